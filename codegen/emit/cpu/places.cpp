// CpuKernelEmitter: compaction, which is stores at running places.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel.h"
#include "codegen/kir/builder.h"
#include "codegen/kir/instr_info.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;

kir::ValueId CpuKernelEmitter::counted_truth(const Instr& running_sum) const {
  const ValueId value = running_sum.operands[0];
  return type(value) == kir::ComputeType::Bool ? value : ValueId();
}

kir::ValueId CpuKernelEmitter::placed_truth(const std::vector<Instr>& instrs) const {
  ValueId truth;
  for (const Instr& instr : instrs) {
    switch (instr.kind) {
      case InstrKind::load_linear:
        break;
      case InstrKind::running_sum:
        if (truth) return {};
        truth = counted_truth(instr);
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

std::set<std::size_t> CpuKernelEmitter::needed_to_place(const std::vector<Instr>& instrs) const {
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

void CpuKernelEmitter::find_hits() {
  if (phases_.size() < 2 || has_many_tiles()) return;
  for (std::size_t p = 1; p < phases_.size(); ++p) {
    for (const Piece& piece : phases_[p].pieces) {
      const kir::Section& section = kernel_.sections[piece.section];
      if (section.kind != kir::SectionKind::Elements) continue;
      const ValueId truth = placed_truth(section.instrs);
      if (!truth) continue;
      const auto known = same_truth(truth, phases_[p].pieces.front().section);
      if (known) hits_.try_emplace(known->index(), piece.section);
    }
  }
}

std::optional<kir::ValueId> CpuKernelEmitter::same_truth(ValueId truth,
                                                         std::size_t before_section) const {
  for (std::size_t s = 0; s < before_section; ++s) {
    const kir::Section& section = kernel_.sections[s];
    // One that places lanes does not look at all vectors.
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

// Computed in the same way from the same operands, by instructions that give the same each time.
bool CpuKernelEmitter::is_same_element(ValueId a, ValueId b, KnownPairs& known) const {
  if (!a || !b || a == b) return a == b;
  if (known.contains({a.index(), b.index()})) return true;
  const Instr *x = definitions_[a.index()], *y = definitions_[b.index()];
  if (!x || !y || x->kind != y->kind || x->operands.size() != y->operands.size()) return false;
  const bool is_same = x->scalar_op == y->scalar_op && x->bits == y->bits && x->index == y->index &&
                       x->buffers == y->buffers && x->dtype == y->dtype &&
                       x->from_dtype == y->from_dtype && type(a) == type(b);
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

bool CpuKernelEmitter::is_only_read(rt::BufferIndex buffer) const {
  for (const kir::Section& section : kernel_.sections) {
    for (const Instr& instr : section.instrs) {
      const bool is_load = instr.kind == InstrKind::load_linear || instr.kind == InstrKind::load_at;
      if (is_load) continue;
      if (std::find(instr.buffers.begin(), instr.buffers.end(), buffer) != instr.buffers.end())
        return false;
    }
  }
  return true;
}

}  // namespace cinch::codegen
