// A kernel's sections, cut into phases. A chunk of groups runs one phase, then the next one. Phases
// end at look-backs, and before and after what short rows compute together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Do several rows of the kernel go through each section together? What is computed once for a row
/// is then computed for a vector of rows, and the packed elements of all rows are packed at once.
/// One row at a time, both would take longer than the elements of a row of 16.
///
/// The rows must have a constant length of 16, 32 or 64 elements. Between two element sections
/// there may only be computations, and stores of one value for each row.
bool takes_rows_together(const CpuKernelFacts& facts);

class CpuPhases {
 public:
  // A run of instructions of one section inside a phase.
  struct Piece {
    std::size_t section, begin, end;
  };
  struct Phase {
    std::vector<Piece> pieces;
    const kir::Instr* look_back = nullptr;  // ends the phase; null for the last
    bool is_for_rows = false;  // computes values of rows, for a vector of rows at a time
  };

  explicit CpuPhases(const CpuKernelFacts& facts);

  const std::vector<Phase>& all() const { return phases_; }
  bool takes_rows_together() const { return takes_rows_together_; }
  /// Group values that a later phase than their own uses.
  const std::set<std::uint32_t>& crossing() const { return crossing_; }
  /// The phase that makes the value.
  std::size_t phase_of(kir::ValueId value) const { return def_phase_[value.index()]; }
  /// Do several phases use the local array, so that each group of a chunk has its own?
  bool is_kept(std::uint32_t local) const;

 private:
  void note_uses(const kir::Instr& instr, std::size_t phase);
  void cut_at_look_backs();
  void cut_short_rows();

  const CpuKernelFacts& facts_;
  bool takes_rows_together_;
  std::vector<Phase> phases_;
  std::vector<std::size_t> def_phase_;
  std::set<std::uint32_t> crossing_;
  std::map<std::uint32_t, std::set<std::size_t>> local_phases_;
};

}  // namespace cinch::codegen
