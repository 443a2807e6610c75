// Plans for random lists of tensors, sizes of pieces and numbers of ranks. Each passes the check
// and, with random delays on every rank, gives the sequential oracle's results.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "runtime/plan/check_plan.h"
#include "runtime/planner/planner.h"
#include "tests/collective/support/forwarding_transport.h"
#include "tests/collective/support/sync_oracle.h"
#include "tests/environment.h"

namespace cinch::testing {
namespace {

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit - 1)(random);
}

// Sleeps now and then: exchanges start late, and end late.
class SlowTransport : public ForwardingTransport {
 public:
  SlowTransport(rt::Transport& inner, std::uint64_t seed)
      : ForwardingTransport(inner), random_(seed) {}

  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override {
    sleep();
    return ForwardingTransport::start(exchange);
  }
  rt::Result<bool> test(rt::Ticket ticket) override {
    sleep();
    return ForwardingTransport::test(ticket);
  }

 private:
  void sleep() {
    if (below(random_, 16) != 0) return;
    std::this_thread::sleep_for(std::chrono::microseconds(below(random_, 300)));
  }

  Random random_;
};

struct Drawn {
  SyncCase one_case;
  std::uint32_t ranks_per_machine = 1;
};

const char* const kPrograms[] = {"ef_sign", "topk(ratio: 0.1)", "threshold(tau: 0.5)",
                                 "terngrad_shared"};

// `has_routes`: tensors take different plans, lengths, sizes of pieces and devices.
Drawn draw(std::uint64_t seed, bool has_routes) {
  Random random(seed);
  Drawn drawn;
  rt::PlanRequest request;
  const auto plans = rt::plan_names();
  request.plan = plans[below(random, plans.size())];
  request.world = static_cast<std::uint32_t>(1 + below(random, 6));
  if (request.plan == "hierarchical" || has_routes) {
    drawn.ranks_per_machine = static_cast<std::uint32_t>(1 + below(random, 3));
    request.world = drawn.ranks_per_machine * static_cast<std::uint32_t>(1 + below(random, 2));
    request.ranks_per_machine = drawn.ranks_per_machine;
  }
  const auto draw_sizes = [&](auto& to) {
    to.piece_bytes = std::uint64_t{1} << (10 + below(random, 6));
    to.lengths = below(random, 2) == 0 ? rt::LengthPolicy::Padded : rt::LengthPolicy::Exchanged;
  };
  draw_sizes(request);
  for (const char* program : kPrograms) {
    drawn.one_case.programs.push_back(compiled_library(program));
  }
  request.codecs = facts_of(drawn.one_case.programs, request.world);
  const std::uint64_t num_tensors = 1 + below(random, 6);
  for (std::uint64_t t = 0; t < num_tensors; ++t) {
    const auto rows =
        static_cast<std::int64_t>(below(random, std::uint64_t{1} << below(random, 15)));
    const std::uint64_t codec = below(random, std::size(kPrograms) + 1);
    request.tensors.push_back(
        {"t" + std::to_string(t), rows, 1,
         codec == std::size(kPrograms) ? rt::kDense : static_cast<std::uint32_t>(codec)});
  }
  if (has_routes) {
    request.routes.resize(1 + below(random, 4));
    for (rt::PlanRoute& route : request.routes) {
      route.plan = plans[below(random, plans.size())];
      draw_sizes(route);
      if (below(random, 3) == 0) route.device = rt::OptionDevice::Cpu;
    }
    for (std::uint64_t t = 0; t < num_tensors; ++t) {
      request.route_of.push_back(static_cast<std::uint32_t>(below(random, request.routes.size())));
    }
  }
  const auto plan = rt::build_plan(request);
  EXPECT_TRUE(plan) << plan.error().message;
  drawn.one_case.plan = std::make_shared<rt::Plan>(*plan);
  drawn.one_case.num_steps = 2;
  return drawn;
}

void check_drawn(std::uint64_t seed, bool has_routes) {
  const Drawn drawn = draw(seed, has_routes);
  const rt::Plan& plan = *drawn.one_case.plan;
  const std::string text = "seed " + std::to_string(seed) + ": " + plan.name + ", " +
                           std::to_string(plan.world()) + " ranks";
  const rt::Status sound = rt::check_plan(plan);
  ASSERT_TRUE(sound) << text << ": " << sound.error().message;
  SyncOracle oracle(plan, drawn.one_case.programs, drawn.one_case.seed, drawn.ranks_per_machine);
  std::vector<std::vector<Tensors>> found(plan.world());
  rt::LoopbackWorld world(plan.world());
  run_ranks(world, plan.world(), [&](const RankBody& own) {
    SlowTransport transport(own.transport, seed * 64 + own.rank);
    auto session = rt::SyncSession::open({.plan = drawn.one_case.plan,
                                          .programs = drawn.one_case.programs,
                                          .threads = 1,
                                          .seed = drawn.one_case.seed},
                                         transport);
    ASSERT_TRUE(session) << text << ": " << session.error().message;
    for (std::uint64_t step = 0; step < drawn.one_case.num_steps; ++step) {
      const rt::Status status = step_on(**session, make_gradients(plan, own.rank, step),
                                        found[own.rank].emplace_back(), step);
      ASSERT_TRUE(status) << text << ": " << status.error().message;
    }
  });
  for (std::uint64_t step = 0; step < drawn.one_case.num_steps; ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
      gradients.push_back(make_gradients(plan, rank, step));
    }
    const Tensors wanted = oracle.step(gradients, step);
    for (std::uint32_t rank = 0; rank < plan.world(); ++rank) {
      ASSERT_TRUE(are_same(found[rank].at(step), wanted))
          << text << ", step " << step << ", rank " << rank;
    }
  }
}

std::uint64_t num_cases() {
  return number_from("CINCH_CASES", is_long_run() ? 3000 : is_sample_run() ? 30 : 80);
}

TEST(RandomPlans, GiveWhatTheOracleGives) {
  for (std::uint64_t seed = 1; seed <= num_cases() && !HasFailure(); ++seed) {
    check_drawn(seed, false);
  }
}

TEST(RandomPlans, OfSeveralRoutesGiveWhatTheOracleGives) {
  for (std::uint64_t seed = 1; seed <= num_cases() && !HasFailure(); ++seed) {
    check_drawn(seed, true);
  }
}

}  // namespace
}  // namespace cinch::testing
