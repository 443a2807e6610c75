#include <algorithm>

#include "codegen/emit/cpu/kernel/facts.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

bool CpuKernelFacts::has_many_tiles() const {
  if (kernel().group_kind != kir::GroupKind::Row) return false;
  const HostExprPool& pool = *program().info.exprs;
  return !pool.is_const(kernel().group_len) ||
         pool.const_value(kernel().group_len).as_int() > kir::kTileElems;
}

// ---- values ----

bool CpuKernelFacts::is_element(ValueId value) const {
  const Level made = level(value);
  return made == Level::Element || made == Level::Combiner ||
         (rows_are_lanes_ && made == Level::Group);
}

bool CpuKernelFacts::is_plain_bound(ValueId element) const {
  const NumberRange bound = range(element);
  return !bound.may_be_nan && (bound.low > 0 || bound.high < 0);
}

bool CpuKernelFacts::is_magnitude(ValueId value) const {
  return kir::is_float(type(value)) && scalar_of(value, ScalarOp::abs) != nullptr;
}

// A vector begins at a multiple of its lanes, both in its tile and in a domain of tiles. So all
// lanes agree in a place without its low bits.
bool CpuKernelFacts::is_alike_in_vectors(ValueId value) const {
  constexpr std::uint64_t kMostLaneBits = 4;
  if (!is_element(value) || is_constant(value)) return true;
  const Instr* made = definition(value);
  if (made == nullptr || !kir::is_integer(type(value))) return false;
  if (made->kind == InstrKind::convert) {
    return kir::is_integer(type(made->operands[0])) && is_alike_in_vectors(made->operands[0]);
  }
  if (made->kind != InstrKind::scalar) return false;
  if (made->scalar_op == ScalarOp::shr && is_constant(made->operands[1])) {
    const Instr* place = definition(made->operands[0]);
    const bool is_place =
        place != nullptr &&
        (place->kind == InstrKind::column ||
         (place->kind == InstrKind::element && kernel().group_kind == kir::GroupKind::Tile));
    const std::uint64_t bits = definition(made->operands[1])->bits;
    if (is_place && bits >= kMostLaneBits && bits < 32) return true;
  }
  return std::ranges::all_of(made->operands, [&](ValueId v) { return is_alike_in_vectors(v); });
}

// ---- memory ----

Storage CpuKernelFacts::storage(rt::BufferIndex buffer) const {
  return storage_of(program().buffers.at(buffer));
}

bool CpuKernelFacts::is_kept_as_bits(std::uint32_t local) const {
  if (kernel().locals[local].type != kir::ComputeType::Bool) return false;
  const auto needs_elements = [](const Instr& instr) {
    const kir::InstrFamily family = kir::family_of(instr.kind);
    const bool is_plain =
        instr.kind == InstrKind::local_store || instr.kind == InstrKind::local_load;
    return family == kir::InstrFamily::LocalWhole ||
           (family == kir::InstrFamily::Local && !is_plain);
  };
  return std::ranges::all_of(kernel().sections, [&](const kir::Section& section) {
    return std::ranges::none_of(section.instrs, needs_elements);
  });
}

bool CpuKernelFacts::is_staged_load(const Instr& instr) const {
  if (instr.kind != InstrKind::load_linear) return false;
  const Storage s = storage(instr.buffers[0]);
  return s.is_packed && !s.is_bit();
}

// ---- draws ----

bool CpuKernelFacts::is_staged_draw(const Instr& instr) const {
  return is_draw(instr.kind) && find_run(instr.operands[index_operand(instr)]).has_value();
}

bool CpuKernelFacts::is_staged_int(const Instr& instr) const {
  return kir::rounds_to_int(instr) && is_staged_draw(instr);
}

// ---- reductions ----

bool CpuKernelFacts::is_any_order(const Instr& instr) const {
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  if (!combiner.op) return false;
  const bool is_bound = *combiner.op == ScalarOp::min || *combiner.op == ScalarOp::max;
  return is_bound || !kir::is_float(type(instr.results[0]));
}

unsigned CpuKernelFacts::same_in_rows(const Instr& instr) const {
  if (instr.kind != InstrKind::reduce || kernel().group_kind != kir::GroupKind::Tile) return 0;
  const kir::Combiner& combiner = kernel().combiners[instr.combiner];
  const std::size_t members = instr.results.size() - 1;
  if (combiner.op || instr.operands.size() > members || members > 32) return 0;
  unsigned same = 0;
  for (std::size_t i = 0; i < members; ++i) {
    if (!is_element(instr.operands[i]) || is_constant(instr.operands[i])) same |= 1u << i;
  }
  for (unsigned before = 0; same != before;) {
    before = same;
    std::set<ValueId> varying;
    for (std::size_t i = 0; i < combiner.args.size(); ++i) {
      if (!(same >> i % members & 1)) varying.insert(combiner.args[i]);
    }
    for (const Instr& step : combiner.body) {
      const bool varies = std::any_of(step.operands.begin(), step.operands.end(),
                                      [&](ValueId operand) { return varying.contains(operand); });
      if (varies) varying.insert(step.results.begin(), step.results.end());
    }
    for (std::size_t i = 0; i < members; ++i) {
      if (varying.contains(combiner.results[i])) same &= ~(1u << i);
    }
  }
  return same;
}

std::vector<kir::ComputeType> CpuKernelFacts::combined_types(const kir::Combiner& combiner) const {
  std::vector<kir::ComputeType> types;
  types.reserve(combiner.results.size());
  for (ValueId result : combiner.results) types.push_back(type(result));
  return types;
}

ValueId CpuKernelFacts::counted_truth(const Instr& running_sum) const {
  const ValueId value = running_sum.operands[0];
  return type(value) == kir::ComputeType::Bool ? value : ValueId();
}

// ---- element sections ----

bool CpuKernelFacts::is_flagged(ValueId value, std::size_t section) const {
  const auto& instrs = kernel().sections[section].instrs;
  return std::any_of(instrs.begin(), instrs.end(), [&](const Instr& instr) {
    return instr.kind == InstrKind::flag_nonfinite && instr.operands[0] == value;
  });
}

std::vector<ValueId> CpuKernelFacts::uniform_bounds(const std::vector<Instr>& instrs) const {
  std::set<ValueId> bounds;
  for (const Instr& instr : instrs) {
    const bool is_bounded = instr.kind == InstrKind::scalar &&
                            kir::is_float(type(instr.results[0])) &&
                            (instr.scalar_op == ScalarOp::min || instr.scalar_op == ScalarOp::max ||
                             instr.scalar_op == ScalarOp::clamp);
    if (!is_bounded) continue;
    for (const ValueId operand : instr.operands) {
      if (!is_element(operand) && !is_constant(operand)) bounds.insert(operand);
    }
  }
  return {bounds.begin(), bounds.end()};
}

bool CpuKernelFacts::rounds_again(const std::vector<Instr>& instrs) const {
  return !counts_accesses_ && !is_quick_ && is_repeatable(instrs) &&
         std::ranges::any_of(instrs, [&](const Instr& instr) { return is_staged_int(instr); });
}

void CpuPhases::note_uses(const Instr& instr, std::size_t phase) {
  for (ValueId value : instr.operands) {
    if (!value || facts_.level(value) != Level::Group) continue;
    if (def_phase_[value.index()] < phase) crossing_.insert(value.index());
  }
  for (ValueId value : instr.results) def_phase_[value.index()] = phase;
  const bool is_local =
      instr.kind == InstrKind::local_store || instr.kind == InstrKind::local_load ||
      instr.kind == InstrKind::local_last || instr.kind == InstrKind::local_previous;
  if (is_local) local_phases_[instr.index].insert(phase);
}

CpuPhases::CpuPhases(const CpuKernelFacts& facts)
    : facts_(facts),
      takes_rows_together_(codegen::takes_rows_together(facts)),
      def_phase_(facts.kernel().values.size(), 0) {
  phases_.emplace_back();
  takes_rows_together_ ? cut_short_rows() : cut_at_look_backs();
}

// A look_back ends its phase. Its result belongs to the next phase, but is kept like values that
// cross phases.
void CpuPhases::cut_at_look_backs() {
  const kir::Kernel& kernel = facts_.kernel();
  for (std::size_t s = 1; s < kernel.sections.size(); ++s) {
    const auto& instrs = kernel.sections[s].instrs;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      note_uses(instrs[i], phases_.size() - 1);
      if (instrs[i].kind != InstrKind::look_back) continue;
      const ValueId total = instrs[i].operands[0];
      if (facts_.level(total) == Level::Group) crossing_.insert(total.index());
      crossing_.insert(instrs[i].results[0].index());
      phases_.back().pieces.push_back({s, begin, i});
      phases_.back().look_back = &instrs[i];
      phases_.emplace_back();
      begin = i + 1;
    }
    phases_.back().pieces.push_back({s, begin, instrs.size()});
  }
}

void CpuPhases::cut_short_rows() {
  const kir::Kernel& kernel = facts_.kernel();
  bool is_behind_elements = false;
  for (std::size_t s = 1; s < kernel.sections.size(); ++s) {
    const kir::Section& section = kernel.sections[s];
    if (section.instrs.empty()) continue;
    const bool is_for_rows = section.kind == kir::SectionKind::Group && is_behind_elements;
    is_behind_elements |= section.kind == kir::SectionKind::Elements;
    if (is_for_rows || phases_.back().is_for_rows) phases_.emplace_back();
    phases_.back().is_for_rows = is_for_rows;
    phases_.back().pieces.push_back({s, 0, section.instrs.size()});
    for (const Instr& instr : section.instrs) note_uses(instr, phases_.size() - 1);
  }
}

bool CpuPhases::is_kept(std::uint32_t local) const {
  const auto found = local_phases_.find(local);
  return found != local_phases_.end() && found->second.size() > 1;
}

}  // namespace cinch::codegen
