// Bodies of value_facts.h.
#include "codegen/emit/value_facts.h"

#include <algorithm>
#include <set>

#include "codegen/kir/instr_info.h"

namespace cinch::codegen {

using kir::InstrKind;

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

bool is_draw(InstrKind kind) {
  switch (kind) {
    case InstrKind::random:
    case InstrKind::random_bits:
    case InstrKind::normal:
    case InstrKind::random_index:
    case InstrKind::stochastic_round:
      return true;
    default:
      return false;
  }
}

std::size_t index_operand(const kir::Instr& draw) {
  return draw.kind == InstrKind::stochastic_round ? 1 : 0;
}

std::size_t iteration_operand(const kir::Instr& draw) {
  return draw.kind == InstrKind::random_index || draw.kind == InstrKind::stochastic_round ? 2 : 1;
}

std::optional<IndexRun> find_run(const kir::Kernel& kernel,
                                 const std::vector<const kir::Instr*>& definitions,
                                 const std::vector<Level>& levels, kir::ValueId value) {
  const auto is_element = [&](kir::ValueId v) { return levels[v.index()] == Level::Element; };
  const kir::Instr* definition = definitions[value.index()];
  if (!is_element(value) || !definition) return std::nullopt;
  if (definition->kind == InstrKind::column) return IndexRun{};
  if (definition->kind == InstrKind::element) return IndexRun{.is_of_tensor = true};
  const bool is_sum = definition->kind == InstrKind::scalar &&
                      definition->scalar_op == ScalarOp::add &&
                      kernel.values[value.index()].type == kir::ComputeType::U32;
  if (!is_sum) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const kir::ValueId run = definition->operands[side], start = definition->operands[1 - side];
    if (!is_element(run) || is_element(start)) continue;
    if (auto found = find_run(kernel, definitions, levels, run)) {
      found->addends.push_back(start);
      return found;
    }
  }
  return std::nullopt;
}

namespace {
bool is_done_again(const kir::Instr& instr, const std::vector<const kir::Instr*>& definitions) {
  switch (instr.kind) {
    case InstrKind::load_linear:
    case InstrKind::load_at:
    case InstrKind::store_linear:
    case InstrKind::local_load:
    case InstrKind::local_previous:
      return true;
    case InstrKind::flag_nonfinite:
      return definitions[instr.operands[0].index()]->kind == InstrKind::load_linear;
    default:
      return kir::is_computed(instr.kind) || is_draw(instr.kind);
  }
}
}  // namespace

bool is_repeatable(const std::vector<kir::Instr>& section,
                   const std::vector<const kir::Instr*>& definitions) {
  std::set<rt::BufferIndex> loaded, stored;
  for (const kir::Instr& instr : section) {
    if (!is_done_again(instr, definitions)) return false;
    const bool is_load = instr.kind == InstrKind::load_linear || instr.kind == InstrKind::load_at;
    if (is_load) loaded.insert(instr.buffers[0]);
    if (instr.kind == InstrKind::store_linear) stored.insert(instr.buffers[0]);
  }
  return std::ranges::none_of(stored, [&](rt::BufferIndex b) { return loaded.contains(b); });
}

const char* rounded_range(kir::ValueRanges& ranges, const kir::Instr& round) {
  const DType to = round.dtype;
  constexpr double kMostFixed = 32766;
  const int magnitude_bits = to.bits - (is_signed_int(to) ? 1 : 0);
  const double top = static_cast<double>((std::uint64_t{1} << magnitude_bits) - 1);
  const double low = is_signed_int(to) ? -top - 1 : 0;
  const NumberRange x = ranges.of(round.operands[0]);
  if (!x.is_within(std::max(low, -kMostFixed), std::min(top, kMostFixed))) return "Any";
  return x.low >= 0 ? "NonNegative" : "Within";
}

}  // namespace cinch::codegen
