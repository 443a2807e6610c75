// Combinations of compressor, plan, ranks and sizes, and their correct results. The tests of every
// transport use these.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/core/hash.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

inline constexpr std::uint32_t kWorlds[] = {1, 2, 3, 4, 5, 8};

/// In the place of a plan: each tensor takes another one.
inline constexpr std::string_view kSeveralRoutes = "routes";
std::vector<std::string> tested_plans();

struct Combination {
  std::string program;  // empty: no program
  std::string plan;     // of tested_plans()
  std::uint32_t world = 1;
  std::int64_t size = 0;
  std::uint64_t piece_bytes = 4096;
  rt::LengthPolicy lengths = rt::LengthPolicy::Padded;

  std::string text() const;
};

/// All combinations of compressor, plan that it takes, number of ranks, size, size of pieces and
/// length policy.
std::vector<Combination> all_combinations();

/// A few of the combinations that cover every pair of values which all of them cover. Another seed
/// gives others.
std::vector<Combination> covering_combinations(std::vector<Combination> all,
                                               std::uint32_t seed = 7);

/// The combinations that a test of a transport runs with this many ranks. In a long run, all of
/// them. Otherwise every transport has a covering set of its own, so that all pairs with a
/// transport are covered, too. In a sample run, a part of that.
std::vector<Combination> combinations_over(std::string_view transport, std::uint32_t world);

/// Tensors of several sizes up to the combination's, and one without a program.
SyncCase case_of(const Combination& one);

/// Programs whose ranks exchange in groups, add in narrow types, and have roots that change.
SyncCase grouped_case(std::uint32_t world);

/// Runs one rank in combinations for as many ranks as the transport has, each in a session of its
/// own. Its updates must equal those of the sequential oracle, bit for bit. Ranks divide the
/// oracle's work and exchange its results. Stops at the first failure.
void run_combinations(rt::Transport& transport, std::span<const Combination> combinations);

/// Digests of the updates of each step.
using StepDigests = std::vector<Hash128>;
StepDigests wanted_digests(const SyncCase& one_case);
/// Checks, on one rank, that a session over the transport gives these.
void check_digests(const SyncCase& one_case, rt::Transport& transport, const StepDigests& wanted,
                   const std::string& text);

/// Runs ranks as threads over loopback: every rank's update must equal that of the sequential
/// oracle, bit for bit, in every step.
void check_steps(const SyncCase& one_case, const std::string& text,
                 std::uint32_t ranks_per_machine = 1);

}  // namespace cinch::testing
