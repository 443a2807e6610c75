#include "codegen/emit/cpu/kernel/phases.h"

namespace cinch::codegen {

using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

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
