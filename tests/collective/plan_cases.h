// Combinations of compressor, plan, ranks and sizes, and what each must give.
#pragma once
#include <string>
#include <vector>

#include "tests/collective/sync_ranks.h"

namespace cinch::testing {

struct Combination {
  std::string program;  // empty: none
  std::string plan;
  std::uint32_t world = 1;
  std::int64_t size = 0;
  std::uint64_t piece_bytes = 4096;
  rt::LengthPolicy lengths = rt::LengthPolicy::Padded;

  std::string text() const;
};

/// Few of them that show every pair of values that all of them show.
std::vector<Combination> covering_combinations(std::vector<Combination> all);

/// Tensors of several sizes, the largest of the combination's, and one without a program.
SyncCase case_of(const Combination& one);

/// Every rank's update is that of the sequential oracle, bit for bit, in every step.
void check_steps(const SyncCase& one_case, const std::string& text,
                 std::uint32_t ranks_per_machine = 1);

}  // namespace cinch::testing
