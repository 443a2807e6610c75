// A kernel's sections cut into phases: a chunk of groups runs one phase, then the next one. Phases
// end at look-backs, and before and behind what short rows compute together.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Kernels over short rows. A chunk of rows goes through each section together: what is computed
/// once for a row is computed for as many rows as a vector has lanes, and the packed elements of
/// the chunk are packed at once. Row by row, both would take longer than the elements of a row
/// of 16.
///
/// Do rows of the kernel go together? Their length is constant: 16, 32 or 64 elements. Between two
/// element sections there are only computations, and stores of one value for each row.
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
    bool is_for_rows = false;  // computes what each row has once, for a vector of rows at a time
  };

  explicit CpuPhases(const CpuKernelFacts& facts);

  const std::vector<Phase>& all() const { return phases_; }
  bool takes_rows_together() const { return takes_rows_together_; }
  /// Group values that are used in a later phase than their own.
  const std::set<std::uint32_t>& crossing() const { return crossing_; }
  /// The phase that makes the value.
  std::size_t phase_of(kir::ValueId value) const { return def_phase_[value.index()]; }
  /// Is a local array used in several phases, so that each group of a chunk has its own?
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
