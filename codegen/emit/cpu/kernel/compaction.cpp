#include "codegen/emit/cpu/kernel/compaction.h"

#include <algorithm>

#include "codegen/kir/instr_info.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::ValueId;

ValueId CpuCompaction::placed_truth(const std::vector<Instr>& instrs) const {
  ValueId truth;
  for (const Instr& instr : instrs) {
    switch (instr.kind) {
      case InstrKind::load_linear:
      case InstrKind::load_at:
      case InstrKind::local_load:
        break;
      case InstrKind::running_sum:
        if (truth) return {};
        truth = facts_.counted_truth(instr);
        if (!truth) return {};
        break;
      case InstrKind::store_at:
        if (!instr.is_compact) return {};
        break;
      default:
        if (!kir::is_computed(instr.kind)) return {};
    }
  }
  return truth;
}

std::set<std::size_t> CpuCompaction::needed_to_place(const std::vector<Instr>& instrs) const {
  std::set<std::size_t> needed;
  const ValueId truth = placed_truth(instrs);
  if (!truth) return needed;
  std::set<std::uint32_t> values = {truth.index()};
  for (std::size_t i = instrs.size(); i-- > 0;) {
    const bool is_needed =
        std::any_of(instrs[i].results.begin(), instrs[i].results.end(),
                    [&](ValueId result) { return values.contains(result.index()); });
    if (!is_needed) continue;
    needed.insert(i);
    for (const ValueId operand : instrs[i].operands) {
      if (operand) values.insert(operand.index());
    }
  }
  return needed;
}

// ---- hits: what an earlier phase knows of the lanes that a section places ----

CpuCompaction::CpuCompaction(const CpuKernelFacts& facts, const CpuPhases& phases) : facts_(facts) {
  const std::vector<CpuPhases::Phase>& all = phases.all();
  if (all.size() < 2 || facts_.has_many_tiles()) return;
  for (std::size_t p = 1; p < all.size(); ++p) {
    for (const CpuPhases::Piece& piece : all[p].pieces) {
      const kir::Section& section = facts_.kernel().sections[piece.section];
      if (section.kind != kir::SectionKind::Elements) continue;
      const ValueId truth = placed_truth(section.instrs);
      if (!truth) continue;
      const auto known = same_truth(truth, all[p].pieces.front().section);
      if (known) hits_.try_emplace(known->index(), piece.section);
    }
  }
}

std::optional<ValueId> CpuCompaction::same_truth(ValueId truth, std::size_t before_section) const {
  for (std::size_t s = 0; s < before_section; ++s) {
    const kir::Section& section = facts_.kernel().sections[s];
    // A section that places lanes skips vectors.
    if (section.kind != kir::SectionKind::Elements || placed_truth(section.instrs)) continue;
    KnownPairs known;
    for (const Instr& instr : section.instrs) {
      if (instr.results.size() == 1 && is_same_element(instr.results[0], truth, known)) {
        return instr.results[0];
      }
    }
  }
  return std::nullopt;
}

// Are both computed in the same way from the same operands, by instructions that always give the
// same?
bool CpuCompaction::is_same_element(ValueId a, ValueId b, KnownPairs& known) const {
  if (!a || !b || a == b) return a == b;
  if (known.contains({a.index(), b.index()})) return true;
  const Instr *x = facts_.definition(a), *y = facts_.definition(b);
  if (!x || !y || x->kind != y->kind || x->operands.size() != y->operands.size()) return false;
  const bool is_same = x->scalar_op == y->scalar_op && x->bits == y->bits && x->index == y->index &&
                       x->buffers == y->buffers && x->dtype == y->dtype &&
                       x->from_dtype == y->from_dtype && facts_.type(a) == facts_.type(b);
  if (!is_same) return false;
  switch (x->kind) {
    case InstrKind::load_linear:
    case InstrKind::load_at:
      if (!is_only_read(x->buffers[0])) return false;
      break;
    default:
      if (!kir::is_computed(x->kind)) return false;
  }
  for (std::size_t i = 0; i < x->operands.size(); ++i) {
    if (!is_same_element(x->operands[i], y->operands[i], known)) return false;
  }
  known.emplace(a.index(), b.index());
  return true;
}

bool CpuCompaction::is_only_read(rt::BufferIndex buffer) const {
  for (const kir::Section& section : facts_.kernel().sections) {
    for (const Instr& instr : section.instrs) {
      if (kir::is_load(instr.kind)) continue;
      if (std::find(instr.buffers.begin(), instr.buffers.end(), buffer) != instr.buffers.end())
        return false;
    }
  }
  return true;
}

std::set<std::size_t> CpuCompaction::known_by_hits(const std::vector<Instr>& instrs) const {
  const ValueId truth = placed_truth(instrs);
  std::set<std::size_t> known;
  std::set<std::uint32_t> used;
  for (std::size_t i = instrs.size(); i-- > 0;) {
    const bool is_root =
        instrs[i].kind == InstrKind::running_sum || instrs[i].kind == InstrKind::store_at;
    const bool is_used =
        std::ranges::any_of(instrs[i].results, [&](ValueId v) { return used.contains(v.index()); });
    const bool is_truth = !instrs[i].results.empty() && instrs[i].results[0] == truth;
    if (is_truth || !(is_root || is_used)) {
      known.insert(i);
      continue;
    }
    for (const ValueId operand : instrs[i].operands) {
      if (operand) used.insert(operand.index());
    }
  }
  return known;
}

bool CpuCompaction::is_placed_by_hits(std::size_t section) const {
  return std::any_of(hits_.begin(), hits_.end(),
                     [&](const auto& hits) { return hits.second == section; });
}

}  // namespace cinch::codegen
