// Combinations of compressor, plan, ranks and sizes, and what each must give: the tests of every
// transport take theirs from here.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

inline constexpr std::uint32_t kWorlds[] = {1, 2, 3, 4, 5, 8};

struct Combination {
  std::string program;  // empty: none
  std::string plan;
  std::uint32_t world = 1;
  std::int64_t size = 0;
  std::uint64_t piece_bytes = 4096;
  rt::LengthPolicy lengths = rt::LengthPolicy::Padded;

  std::string text() const;
};

/// Every compressor, plan that it takes, number of ranks, size, size of pieces and way to send
/// lengths.
std::vector<Combination> all_combinations();

/// Few of them that show every pair of values that all of them show; others with another seed.
std::vector<Combination> covering_combinations(std::vector<Combination> all,
                                               std::uint32_t seed = 7);

/// What a test of a transport runs with so many ranks. In a long run all of them; else every
/// transport has a covering set of its own, so that all pairs with a transport are shown, too. In a
/// sample run some of that.
std::vector<Combination> combinations_over(std::string_view transport, std::uint32_t world);

/// Tensors of several sizes, the largest of the combination's, and one without a program.
SyncCase case_of(const Combination& one);

/// One rank's part in combinations of as many ranks as the transport has: each in a session of its
/// own, whose updates are those of the sequential oracle, bit for bit. Ranks share the oracle's
/// work, and tell each other what it gives. Ends with the first that fails.
void run_combinations(rt::Transport& transport, std::span<const Combination> combinations);

/// What the updates of each step are.
using StepDigests = std::vector<Hash128>;
StepDigests wanted_digests(const SyncCase& one_case);
/// One rank: a session over the transport gives these.
void check_digests(const SyncCase& one_case, rt::Transport& transport, const StepDigests& wanted,
                   const std::string& text);

/// Ranks as threads over loopback: every rank's update is that of the sequential oracle, bit for
/// bit, in every step.
void check_steps(const SyncCase& one_case, const std::string& text,
                 std::uint32_t ranks_per_machine = 1);

}  // namespace cinch::testing
