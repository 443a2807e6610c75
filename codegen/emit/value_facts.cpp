#include "codegen/emit/value_facts.h"

#include <algorithm>

namespace cinch::codegen {

using kir::InstrKind;

namespace {

// The instruction that makes each value.
std::vector<const kir::Instr*> find_definitions(const kir::Kernel& kernel) {
  std::vector<const kir::Instr*> definitions(kernel.values.size(), nullptr);
  const auto note = [&](const std::vector<kir::Instr>& instrs) {
    for (const kir::Instr& instr : instrs) {
      for (kir::ValueId result : instr.results) definitions[result.index()] = &instr;
    }
  };
  for (const kir::Section& section : kernel.sections) note(section.instrs);
  for (const kir::Combiner& combiner : kernel.combiners) note(combiner.body);
  return definitions;
}

}  // namespace

std::size_t index_operand(const kir::Instr& draw) {
  return draw.kind == InstrKind::stochastic_round ? 1 : 0;
}

std::size_t iteration_operand(const kir::Instr& draw) {
  return draw.kind == InstrKind::random_index || draw.kind == InstrKind::stochastic_round ? 2 : 1;
}

ValueFacts::ValueFacts(const kir::KernelProgram& program, const kir::Kernel& kernel)
    : program_(program),
      kernel_(kernel),
      levels_(value_levels(kernel)),
      definitions_(find_definitions(kernel)),
      ranges_(program, kernel, definitions_) {}

bool ValueFacts::is_constant(kir::ValueId value) const {
  const kir::Instr* made = definition(value);
  return made && made->kind == InstrKind::constant;
}

const kir::Instr* ValueFacts::scalar_of(kir::ValueId value, ScalarOp op) const {
  const kir::Instr* made = definition(value);
  return made && made->kind == InstrKind::scalar && made->scalar_op == op ? made : nullptr;
}

const char* ValueFacts::short_form(const kir::Instr& instr) const {
  if (instr.kind != InstrKind::scalar || type(instr.results[0]) != kir::ComputeType::F32)
    return nullptr;
  const kir::ValueId x = instr.operands[0];
  if (instr.scalar_op == ScalarOp::floor && scalar_of(x, ScalarOp::log2)) return "floor_of_log2";
  if (instr.scalar_op != ScalarOp::exp2) return nullptr;
  const bool is_whole = scalar_of(x, ScalarOp::floor) || scalar_of(x, ScalarOp::ceil) ||
                        scalar_of(x, ScalarOp::round) || scalar_of(x, ScalarOp::trunc);
  return is_whole ? "exp2_of_whole" : nullptr;
}

kir::ValueId ValueFacts::short_operand(const kir::Instr& instr) const {
  const kir::ValueId x = instr.operands[0];
  return instr.scalar_op == ScalarOp::floor ? definition(x)->operands[0] : x;
}

std::optional<IndexRun> ValueFacts::find_run(kir::ValueId value) const {
  const auto is_element = [&](kir::ValueId v) { return level(v) == Level::Element; };
  const kir::Instr* made = definition(value);
  if (!is_element(value) || !made) return std::nullopt;
  if (made->kind == InstrKind::column) return IndexRun{};
  if (made->kind == InstrKind::element) return IndexRun{.is_of_tensor = true};
  const bool is_sum = made->kind == InstrKind::scalar && made->scalar_op == ScalarOp::add &&
                      type(value) == kir::ComputeType::U32;
  if (!is_sum) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const kir::ValueId run = made->operands[side], start = made->operands[1 - side];
    if (!is_element(run) || is_element(start)) continue;
    if (auto found = find_run(run)) {
      found->addends.push_back(start);
      return found;
    }
  }
  return std::nullopt;
}

bool ValueFacts::is_done_again(const kir::Instr& instr) const {
  switch (instr.kind) {
    case InstrKind::load_linear:
    case InstrKind::load_at:
    case InstrKind::store_linear:
    case InstrKind::local_load:
    case InstrKind::local_previous:
      return true;
    case InstrKind::flag_nonfinite:
      return definition(instr.operands[0])->kind == InstrKind::load_linear;
    default:
      return kir::is_computed(instr.kind) || kir::is_draw(instr.kind);
  }
}

bool ValueFacts::is_repeatable(const std::vector<kir::Instr>& section) const {
  std::set<rt::BufferIndex> loaded, stored;
  for (const kir::Instr& instr : section) {
    if (!is_done_again(instr)) return false;
    if (kir::is_load(instr.kind)) loaded.insert(instr.buffers[0]);
    if (instr.kind == InstrKind::store_linear) stored.insert(instr.buffers[0]);
  }
  return std::ranges::none_of(stored, [&](rt::BufferIndex b) { return loaded.contains(b); });
}

const char* ValueFacts::rounded_range(const kir::Instr& round) const {
  const DType to = round.dtype;
  constexpr double kMostFixed = 32766;
  const int magnitude_bits = to.bits - (is_signed_int(to) ? 1 : 0);
  const double top = static_cast<double>((std::uint64_t{1} << magnitude_bits) - 1);
  const double low = is_signed_int(to) ? -top - 1 : 0;
  const NumberRange x = ranges_.of(round.operands[0]);
  if (!x.is_within(std::max(low, -kMostFixed), std::min(top, kMostFixed))) return "Any";
  return x.low >= 0 ? "NonNegative" : "Within";
}

}  // namespace cinch::codegen
