// Finds sections that only store selected lanes at running places, and what earlier phases know of
// these lanes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/emit/cpu/kernel/facts.h"
#include "codegen/emit/cpu/kernel/phases.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CpuCompaction {
 public:
  CpuCompaction(const CpuKernelFacts& facts, const CpuPhases& phases);

  /// The truth value by which such a section may skip vectors, or none.
  kir::ValueId placed_truth(const std::vector<kir::Instr>& instrs) const;
  /// Instructions of an element section that compute the truth value of its only running count, if
  /// vectors without a true lane have no effect. Otherwise none.
  std::set<std::size_t> needed_to_place(const std::vector<kir::Instr>& instrs) const;
  /// For truth values of earlier phases: the later section that places the lanes for which the
  /// value is true, and needs only vectors with such a lane.
  const std::map<std::uint32_t, std::size_t>& hits() const { return hits_; }
  bool is_placed_by_hits(std::size_t section) const;
  /// The instructions of such a section that only compute what the hits tell.
  std::set<std::size_t> known_by_hits(const std::vector<kir::Instr>& instrs) const;

 private:
  using Instr = kir::Instr;
  using ValueId = kir::ValueId;
  using KnownPairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;

  std::optional<ValueId> same_truth(ValueId truth, std::size_t before_section) const;
  bool is_same_element(ValueId a, ValueId b, KnownPairs& known) const;
  bool is_only_read(rt::BufferIndex buffer) const;

  const CpuKernelFacts& facts_;
  std::map<std::uint32_t, std::size_t> hits_;
};

}  // namespace cinch::codegen
