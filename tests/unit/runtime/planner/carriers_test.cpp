// What encodes sums again: the program, a carrier of its own, f32, or nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"
#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

constexpr std::uint32_t kCarriedWorlds[] = {1, 2, 3, 4, 5, 8};

// Codecs 0 and 1 as in mixed_request; codec 4 carries the sums of codec 0, and sends a fifth of the
// bytes.
PlanRequest carried_request(const std::string& plan, std::uint32_t world, CarrierKind kind) {
  PlanRequest request = mixed_request(plan, world);
  request.codecs[0].carrier = {kind, "fifths", false};
  if (kind != CarrierKind::Program) return request;
  request.codecs.push_back({"fifths", true, false, true,
                            [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
                              return 64 + static_cast<std::uint64_t>(rows * cols) / 5;
                            }});
  request.codecs[0].carrier_codec = 4;
  return request;
}

bool encodes_again(const Task& task) {
  return task.kind == TaskKind::Encode && task.from == Value::Sum;
}

// Tasks of codec 0 that encode sums are its carrier's alone.
TEST(Carriers, EncodeAllSums) {
  for (const CarrierKind kind : {CarrierKind::Program, CarrierKind::Exact}) {
    for (const std::uint32_t world : kCarriedWorlds) {
      for (const std::string_view name : plan_names()) {
        const Plan plan = plan_of(carried_request(std::string(name), world, kind));
        const Status checked = check_plan(plan);
        ASSERT_TRUE(checked) << name << ", " << world << ": " << checked.error().message;
        std::size_t num_carried = 0;
        for (const RankPlan& rank : plan.ranks) {
          for (const Task& task : rank.tasks) {
            // Within a machine sums are f32 whatever their codec.
            const bool is_within = name == "hierarchical" && task.is_dense;
            if (!encodes_again(task) || is_within) continue;
            for (const std::uint32_t group : task.groups) {
              const std::uint32_t values = group_of_values(plan, group);
              if (plan.groups[values].codec != 0) continue;
              ++num_carried;
              const bool is_carried =
                  kind == CarrierKind::Exact ? task.is_dense : plan.groups[group].codec == 4;
              EXPECT_TRUE(is_carried) << name << ": " << describe_task(plan, task);
            }
          }
        }
        if (name != "hierarchical") {
          EXPECT_EQ(num_carried > 0, encodes_sums(name)) << name << ", " << world;
        }
      }
    }
  }
}

// Messages of sums have the carrier's size, those of gradients the program's.
TEST(Carriers, HaveMessagesOfTheirOwnSize) {
  PlanRequest request = carried_request("two_shot", 4, CarrierKind::Program);
  request.tensors = {{"large", 100000, 1, 0}};
  const Plan plan = plan_of(request);
  std::size_t num_sums = 0;
  for (const Task& task : plan.ranks[0].tasks) {
    if (task.kind != TaskKind::Encode) continue;
    for (std::size_t i = 0; i < task.groups.size(); ++i) {
      const Piece& piece = plan.pieces[plan.groups[task.groups[i]].pieces[0]];
      const auto elems = static_cast<std::uint64_t>(piece.num_elems);
      EXPECT_EQ(plan.ranks[0].slots[task.writes[i]].capacity,
                64 + (encodes_again(task) ? elems / 5 : 2 * elems));
      if (encodes_again(task)) ++num_sums;
    }
  }
  EXPECT_EQ(num_sums, 7U);  // bundles of 65536 bytes
}

TEST(Carriers, ServeEveryOptionBetweenMachines) {
  for (const CarrierKind kind : {CarrierKind::Program, CarrierKind::Exact}) {
    PlanRequest request = carried_request("hierarchical", 4, kind);
    request.ranks_per_machine = 2;
    for (const ExchangeOption& option : all_exchange_options({.has_cpu = false})) {
      request.option = option;
      const auto plan = build_plan(request);
      ASSERT_TRUE(plan) << describe_option(option) << ": " << plan.error().message;
      const Status checked = check_plan(*plan);
      ASSERT_TRUE(checked) << describe_option(option) << ": " << checked.error().message;
    }
  }
}

TEST(Carriers, AreAskedForByPlansThatNeedThem) {
  for (const std::string_view name : plan_names()) {
    const auto plan = build_plan(carried_request(std::string(name), 3, CarrierKind::None));
    EXPECT_EQ(static_cast<bool>(plan), !encodes_sums(name)) << name;
    if (plan) continue;
    EXPECT_EQ(plan.error().message, "cuts does not take the plan " + std::string(name) +
                                        ": fifths; it takes allreduce, allgather");
    PlanRequest without = carried_request(std::string(name), 3, CarrierKind::Program);
    without.codecs[0].carrier_codec = kDense;
    const auto missing = build_plan(without);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message,
              "cuts carries sums by fifths, which is not among the programs");
  }
}

TEST(Carriers, DecideTheUsualPlan) {
  PlanRequest request = carried_request("", 4, CarrierKind::Itself);
  EXPECT_EQ(usual_plan(request), "two_shot");
  request = carried_request("", 4, CarrierKind::None);
  EXPECT_EQ(usual_plan(request), "allgather");
  const auto arrays = [](std::int64_t rows, std::int64_t) -> Result<std::vector<SumArray>> {
    return std::vector<SumArray>{{kF16, RankReduction::Sum, rows}};
  };
  request.codecs[0].sum_arrays = arrays;
  EXPECT_EQ(usual_plan(request), "allgather");  // codec 1 has none
  request.codecs[1].sum_arrays = arrays;
  EXPECT_EQ(usual_plan(request), "allreduce");
  // A sum of f16 may exceed the type unless ranks can send shares of the mean.
  for (const bool is_linear : {false, true}) {
    PlanRequest narrow = carried_request("", 4, CarrierKind::Itself);
    for (CodecFacts& codec : narrow.codecs) {
      codec.sum_arrays = arrays;
      codec.has_narrow_fields = true;
      codec.is_linear = is_linear;
    }
    EXPECT_EQ(usual_plan(narrow), is_linear ? "allreduce" : "two_shot");
    narrow.world = 1;
    EXPECT_EQ(usual_plan(narrow), "allreduce");
  }
  request.tensors = {{"bias", 10, 1, kDense}};
  EXPECT_EQ(usual_plan(request), "two_shot");
}

TEST(Carriers, StayInPlanFiles) {
  const Plan plan = plan_of(carried_request("ring", 3, CarrierKind::Program));
  const auto read = plan_from_json(plan_to_json(plan));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, plan);
  EXPECT_EQ(plan_digest(*read), plan_digest(plan));
}

TEST(Carriers, OfOtherPiecesAreRefused) {
  Plan plan = plan_of(carried_request("two_shot", 3, CarrierKind::Program));
  const auto carrier = std::ranges::find_if(plan.groups, [](const Group& group) {
    return group.carries != kNoGroup && !group.pieces.empty();
  });
  ASSERT_NE(carrier, plan.groups.end());
  Plan broken = plan;
  broken.groups[static_cast<std::size_t>(carrier - plan.groups.begin())].pieces.pop_back();
  EXPECT_FALSE(check_plan(broken));
  broken = plan;
  broken.groups[static_cast<std::size_t>(carrier - plan.groups.begin())].carries =
      static_cast<std::uint32_t>(plan.groups.size());
  EXPECT_FALSE(check_plan(broken));
}

// Four ranks send quarters of their gradients where others add to them.
TEST(Carriers, NarrowFieldsHoldSharesOfTheMean) {
  for (const std::string_view name : {"ring", "tree"}) {
    PlanRequest request = carried_request(std::string(name), 3, CarrierKind::Itself);
    request.codecs[0].has_narrow_fields = request.codecs[0].is_linear = true;
    const Plan plan = plan_of(request);
    const Status checked = check_plan(plan);
    ASSERT_TRUE(checked) << checked.error().message;
    std::set<float> factors;
    for (const Task& task : plan.ranks[0].tasks) {
      if (task.kind == TaskKind::Scale) factors.insert(task.factor);
    }
    EXPECT_EQ(factors, (std::set<float>{0.25f, 4.0f})) << name;
  }
}

}  // namespace
}  // namespace cinch::rt
