// Bodies of plan_cases.h.
#include "tests/collective/support/plan_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "runtime/plan/check_plan.h"
#include "tests/collective/support/sync_oracle.h"
#include "tests/environment.h"
#include "tests/time_bound.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::testing {

std::string Combination::text() const {
  return (program.empty() ? "dense" : program) + ", " + plan + ", " + std::to_string(world) +
         " ranks, " + std::to_string(size) + " elements, pieces of " + std::to_string(piece_bytes) +
         " bytes";
}

namespace {

const std::string kPrograms[] = {"",
                                 "onebit",
                                 "ef_sign",
                                 "signsgd",
                                 "topk(ratio: 0.1)",
                                 "threshold(tau: 0.5)",
                                 "qsgd",
                                 "randomk(ratio: 0.2)",
                                 "momentum(error_feedback(minmax))",
                                 "terngrad_shared",
                                 "oktopk(ratio: 0.1)",
                                 "fp16",
                                 "count_sketch"};
constexpr std::uint64_t kPieceBytes[] = {1024, 16384};
constexpr rt::LengthPolicy kPolicies[] = {rt::LengthPolicy::Padded, rt::LengthPolicy::Exchanged};

// 0, 1, ranks - 1, odd, large.
std::set<std::int64_t> sizes_for(std::uint32_t world) {
  return {0, 1, static_cast<std::int64_t>(world) - 1, 333, 20000};
}

// Pairs of values of different fields, by number.
using Pairs = std::set<std::pair<std::size_t, std::size_t>>;

Pairs pairs_of(const Combination& one, std::map<std::string, std::size_t>& numbers) {
  const auto number = [&](const std::string& value) {
    return numbers.emplace(value, numbers.size()).first->second;
  };
  const std::size_t values[] = {number("p " + one.program),
                                number("l " + one.plan),
                                number("w " + std::to_string(one.world)),
                                number("s " + std::to_string(one.size)),
                                number("b " + std::to_string(one.piece_bytes)),
                                number("n " + std::to_string(static_cast<int>(one.lengths)))};
  Pairs pairs;
  for (const std::size_t a : values) {
    for (const std::size_t b : values) {
      if (a < b) pairs.emplace(a, b);
    }
  }
  return pairs;
}

// The combinations that show a pair which no earlier one shows.
std::vector<Combination> first_shown(const std::vector<Combination>& all) {
  std::map<std::string, std::size_t> numbers;
  Pairs seen;
  std::vector<Combination> chosen;
  for (const Combination& one : all) {
    const std::size_t before = seen.size();
    seen.merge(pairs_of(one, numbers));
    if (seen.size() > before) chosen.push_back(one);
  }
  return chosen;
}

}  // namespace

std::vector<std::string> tested_plans() {
  std::vector<std::string> plans(rt::plan_names().begin(), rt::plan_names().end());
  plans.emplace_back(kSeveralRoutes);
  return plans;
}

std::vector<Combination> all_combinations() {
  std::vector<Combination> all;
  for (const std::string& program : kPrograms) {
    for (const std::string& plan : tested_plans()) {
      // A vote takes no partial sums.
      if (program == "signsgd" && (plan == "ring" || plan == "tree")) continue;
      for (const std::uint32_t world : kWorlds) {
        for (const std::int64_t size : sizes_for(world)) {
          for (const std::uint64_t bytes : kPieceBytes) {
            for (const rt::LengthPolicy lengths : kPolicies) {
              all.push_back({program, plan, world, size, bytes, lengths});
            }
          }
        }
      }
    }
  }
  return all;
}

// Greedy, in a random order; then backwards, since late ones may show what early ones do.
std::vector<Combination> covering_combinations(std::vector<Combination> all, std::uint32_t seed) {
  std::ranges::shuffle(all, std::mt19937(seed));
  auto chosen = first_shown(all);
  std::ranges::reverse(chosen);
  return first_shown(chosen);
}

std::vector<Combination> combinations_over(std::string_view transport, std::uint32_t world) {
  auto chosen = all_combinations();
  // Each process compiles its programs itself: a sample run has few.
  const std::span few = std::span(kPrograms).first(4);
  if (is_sample_run() && transport == "mpi") {
    std::erase_if(chosen, [&](const Combination& one) {
      return std::ranges::find(few, one.program) == few.end();
    });
  }
  if (!is_long_run()) {
    chosen = covering_combinations(chosen, static_cast<std::uint32_t>(hash64(transport)));
  }
  constexpr std::size_t kEachOfSample = 3;
  std::vector<Combination> kept;
  for (std::size_t i = 0; i < chosen.size(); i += is_sample_run() ? kEachOfSample : 1) {
    if (chosen[i].world == world) kept.push_back(chosen[i]);
  }
  return kept;
}

SyncCase case_of(const Combination& one) {
  rt::PlanRequest request;
  request.plan = one.plan;
  request.world = one.world;
  request.piece_bytes = one.piece_bytes;
  request.lengths = one.lengths;
  request.tensors = {{"large", one.size, 1, 0},
                     {"bias", 7, 1, rt::kDense},
                     {"small", 40, 1, 0},
                     {"smaller", 3, 2, 0}};
  if (one.plan == kSeveralRoutes) {
    request.routes = {
        {.plan = "two_shot", .piece_bytes = one.piece_bytes, .lengths = one.lengths},
        {.plan = "tree"},
        {.plan = "allgather", .lengths = one.lengths, .device = rt::OptionDevice::Cpu},
        {.plan = "ps", .piece_bytes = 1024}};
    request.route_of = {0, 1, 2, 3};
  }
  return make_sync_case(one.program.empty() ? nullptr : compiled_library(one.program), request);
}

namespace {

// Its exchanges are known before it runs.
constexpr const char* kGrouped = R"(
compressor grouped {
  sync(g: [f32; n]) {
    let here = allreduce(g, sum, group: machine_ranks)
    let total = allreduce(here, mean, group: world / machine_ranks, stride: machine_ranks)
    let rows = reshape(iota(machine_ranks * 5) * 3 + worker as u32, machine_ranks, 5)
    let nibbles = all_to_all((rows % 16) as u4, group: machine_ranks)
    let heads = allgather(total, group: world / machine_ranks, stride: machine_ranks)
    let tiny = allreduce(g * 0.01, mean, in: f8e4m3) as f32
    let own = here + heads[0] + sum(nibbles as u32) as f32 + tiny
    allreduce(own * (worker as f32 + 1), sum, in: bf16) as f32
  }
}
)";
// Values decide about its root, so it is one task.
constexpr const char* kLed = R"(
compressor led {
  sync(g: [f32; n]) {
    let leader = broadcast(g, root: (step + 1) % world)
    let best = allreduce(select(abs(g[0]) == allreduce(abs(g[0]), max), worker as u32, 0), max)
    let here = allreduce(leader * worker as f32, sum, group: machine_ranks)
    allreduce(broadcast(clamp(g, -7, 7) as i4, root: best) as f32 + here, mean, in: f16) as f32
  }
}
)";

}  // namespace

SyncCase grouped_case(std::uint32_t world) {
  rt::PlanRequest request;
  request.plan = "two_shot";
  request.world = world;
  request.tensors = {{"large", 1003, 1, 0},
                     {"led", 333, 1, 1},
                     {"small", 64, 1, 0},
                     {"one", 1, 1, 0},
                     {"none", 0, 1, 0}};
  SyncCase made;
  made.machine_ranks = world % 2 == 0 ? std::max(2U, world / 2) : 0;
  made.programs = {compiled_text("grouped", kGrouped), compiled_text("led", kLed)};
  for (const auto& program : made.programs) {
    request.codecs.push_back(rt::codec_facts(rt::image_of(program), world, 0, made.machine_ranks));
  }
  const auto plan = rt::build_plan(request);
  EXPECT_TRUE(plan) << plan.error().message;
  if (plan) made.plan = std::make_shared<rt::Plan>(*plan);
  made.timeout = std::chrono::seconds(240);
  return made;
}

namespace {

Hash128 digest_of(const Tensors& tensors) {
  Hasher hasher;
  for (const auto& tensor : tensors) {
    hasher.add(tensor.size()).add_bytes(tensor.data(), tensor.size() * sizeof(float));
  }
  return hasher.finish128();
}

// Ranks wait this long for each other: one may be compiling, with sanitizers, while all others run.
constexpr std::chrono::seconds kPatience{240};

// At most one combination for each rank: every rank computes one and sends it to the others.
std::vector<StepDigests> share_wanted(rt::Transport& transport,
                                      std::span<const Combination> batch) {
  const std::uint32_t rank = transport.rank(), world = transport.world();
  const std::size_t num_steps = SyncCase{}.num_steps;
  StepDigests own(num_steps), all(num_steps * world);
  if (rank < batch.size()) own = wanted_digests(case_of(batch[rank]));
  std::vector<rt::ByteRange> parts(world);
  for (std::uint64_t r = 0; r < world; ++r) {
    parts[r] = {r * num_steps * sizeof(Hash128), num_steps * sizeof(Hash128)};
  }
  rt::Exchange gather{rt::ExchangeKind::AllGather};
  gather.input = rt::bytes_of(own);
  gather.output = rt::room_of(all);
  gather.received = parts;
  const rt::Status status = rt::exchange_now(transport, gather, kPatience, "what is wanted");
  EXPECT_TRUE(status) << status.error().message;
  std::vector<StepDigests> by_case;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i * num_steps);
    by_case.emplace_back(first, first + static_cast<std::ptrdiff_t>(num_steps));
  }
  return by_case;
}

}  // namespace

StepDigests wanted_digests(const SyncCase& one_case) {
  SyncOracle oracle(*one_case.plan, one_case.programs, one_case.seed,
                    std::max(1U, one_case.machine_ranks));
  StepDigests digests;
  for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      gradients.push_back(gradients_of(one_case, rank, step));
    }
    digests.push_back(digest_of(oracle.step(gradients, step)));
  }
  return digests;
}

void check_digests(const SyncCase& one_case, rt::Transport& transport, const StepDigests& wanted,
                   const std::string& text) {
  const std::uint32_t rank = transport.rank();
  const auto session = rt::SyncSession::open(sync_options(one_case, rank), transport);
  ASSERT_TRUE(session) << text << ", rank " << rank << ": " << session.error().message;
  for (std::uint64_t step = 0; step < one_case.num_steps; ++step) {
    Tensors updates;
    const rt::Status status = step_on(**session, gradients_of(one_case, rank, step), updates, step);
    ASSERT_TRUE(status) << text << ", step " << step << ", rank " << rank << ": "
                        << status.error().message;
    ASSERT_EQ(digest_of(updates), wanted[step]) << text << ", step " << step << ", rank " << rank;
  }
}

void run_combinations(rt::Transport& transport, std::span<const Combination> combinations) {
  constexpr unsigned kMostSeconds = 300;
  std::optional<TimeBound> bound;
  const auto begin = [&](const std::string& what) {
    if (transport.rank() != 0) return;  // one rank prints for all
    if (!bound) bound.emplace(kMostSeconds, what);
    bound->restart(what);
  };
  while (!combinations.empty()) {
    const auto batch =
        combinations.first(std::min<std::size_t>(transport.world(), combinations.size()));
    combinations = combinations.subspan(batch.size());
    begin("what is wanted of " + batch[0].text() + " and some more");
    const auto wanted = share_wanted(transport, batch);
    for (std::size_t i = 0; i < batch.size() && !::testing::Test::HasFailure(); ++i) {
      begin(batch[i].text());
      SyncCase one_case = case_of(batch[i]);
      one_case.timeout = kPatience;
      check_digests(one_case, transport, wanted[i],
                    std::string(transport.name()) + ", " + batch[i].text());
    }
    if (::testing::Test::HasFailure()) return;
  }
}

void check_steps(const SyncCase& one_case, const std::string& text,
                 std::uint32_t ranks_per_machine) {
  const rt::Status sound = rt::check_plan(*one_case.plan);
  ASSERT_TRUE(sound) << text << ": " << sound.error().message;
  const auto results = run_steps(one_case);
  SyncOracle oracle(*one_case.plan, one_case.programs, one_case.seed, ranks_per_machine);
  for (std::uint64_t step = 0; step < results.size(); ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      gradients.push_back(gradients_of(one_case, rank, step));
    }
    const Tensors wanted = oracle.step(gradients, step);
    for (std::uint32_t rank = 0; rank < one_case.plan->world(); ++rank) {
      ASSERT_EQ(results[step].errors[rank], "") << text << ", step " << step << ", rank " << rank;
      ASSERT_TRUE(are_same(results[step].updates[rank], wanted))
          << text << ", step " << step << ", rank " << rank;
    }
  }
}

}  // namespace cinch::testing
