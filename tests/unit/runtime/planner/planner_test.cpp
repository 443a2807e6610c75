// Plans for any number of ranks pass their check, and cut and combine tensors as they should.
#include "runtime/planner/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "runtime/plan/check_plan.h"
#include "runtime/plan/plan.h"
#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

constexpr std::uint32_t kWorlds[] = {1, 2, 3, 4, 5, 7, 8, 13};

class EachPlan : public testing::TestWithParam<std::string_view> {};

TEST_P(EachPlan, PassesItsCheckForAnyNumberOfRanks) {
  for (const std::uint32_t world : kWorlds) {
    for (const LengthPolicy lengths : {LengthPolicy::Padded, LengthPolicy::Exchanged}) {
      PlanRequest request = mixed_request(std::string(GetParam()), world);
      request.lengths = lengths;
      if (world > 2) request.servers = {2, 0};
      const Status status = check_plan(plan_of(request));
      EXPECT_TRUE(status) << world << " ranks: " << (status ? "" : status.error().message);
    }
  }
}

// All ranks of an exchange give it one round, which is behind those of the exchanges before it.
TEST_P(EachPlan, OrdersExchangesByRounds) {
  for (const std::uint32_t world : kWorlds) {
    PlanRequest request = mixed_request(std::string(GetParam()), world);
    request.lengths = LengthPolicy::Exchanged;
    if (world % 4 == 0) request.ranks_per_machine = 4;
    if (world > 2) request.servers = {2, 0};
    const Plan plan = plan_of(request);
    using Way = std::tuple<std::uint32_t, std::uint32_t>;
    std::map<Way, std::vector<std::uint32_t>> sent, received, collectives;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      for (const Task& task : plan.ranks[rank].tasks) {
        const bool meets = task.lane() == Lane::Network;
        for (const std::uint32_t earlier : task.after) {
          const std::uint32_t before = plan.ranks[rank].tasks[earlier].round;
          ASSERT_TRUE(meets ? before < task.round : before <= task.round)
              << world << " ranks: " << describe_task(plan, task);
        }
        if (!meets) continue;
        const bool is_exchange = task.kind == TaskKind::Exchange;
        auto& of = is_exchange && task.exchange == ExchangeKind::Send ? sent[{rank, task.peer}]
                   : is_exchange && task.exchange == ExchangeKind::Receive
                       ? received[{task.peer, rank}]
                       : collectives[{rank, rank}];
        of.push_back(task.round);
      }
    }
    EXPECT_EQ(sent, received);
    for (const auto& [rank, rounds] : collectives) EXPECT_EQ(rounds, collectives.begin()->second);
  }
}

// Opening takes time for each pair of ranks if a rank writes or checks the tasks of all.
TEST_P(EachPlan, HasTheTasksOfOneRankAlone) {
  PlanRequest request = mixed_request(std::string(GetParam()), 4);
  request.ranks_per_machine = 2;
  const Plan whole = plan_of(request);
  for (const std::uint32_t rank : {0U, 3U}) {
    request.rank = rank;
    const Plan own = plan_of(request);
    EXPECT_EQ(own.ranks[rank], whole.ranks[rank]);
    EXPECT_TRUE(own.ranks[2].tasks.empty());
    EXPECT_EQ(plan_digest(own), plan_digest(whole));
  }
  request.rank = 4;
  EXPECT_FALSE(build_plan(request));
}

TEST_P(EachPlan, IsWrittenAndCheckedByOneOfAThousandRanks) {
  PlanRequest request = mixed_request(std::string(GetParam()), 1024);
  request.tensors = {{"large", 1 << 20, 1, 0}, {"matrix", 300, 40, 1}, {"bias", 10, 1, kDense}};
  request.piece_bytes = 4 << 20;
  request.ranks_per_machine = 8;
  request.rank = 517;
  const Status status = check_rank(plan_of(request), 517);
  EXPECT_TRUE(status) << status.error().message;
}

TEST_P(EachPlan, IsReadBackFromItsText) {
  const Plan plan = plan_of(mixed_request(std::string(GetParam()), 3));
  const auto read = plan_from_json(plan_to_json(plan));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, plan);
  EXPECT_NE(print_plan(plan, 1).find("large[0.."), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Planner, EachPlan,
                         testing::ValuesIn(plan_names().begin(), plan_names().end()),
                         [](const auto& each) { return std::string(each.param); });

// Every option that uses one kind of device, for machines of several sizes.
TEST(Planner, WritesEveryOptionOfTheTree) {
  const std::vector<ExchangeOption> options = all_exchange_options({.has_cpu = false});
  for (const auto& [machines, on_each] :
       {std::pair(1U, 1U), {2U, 2U}, {3U, 2U}, {1U, 3U}, {3U, 1U}}) {
    PlanRequest request;
    request.plan = "hierarchical";
    request.world = machines * on_each;
    request.ranks_per_machine = on_each;
    request.codecs = mixed_request("ring", 1).codecs;
    request.tensors = {{"large", 100000, 1, 0}, {"matrix", 30, 40, 1}, {"bias", 10, 1, kDense}};
    request.lengths = LengthPolicy::Exchanged;
    for (const ExchangeOption& option : options) {
      request.option = option;
      const Status status = check_plan(plan_of(request));
      ASSERT_TRUE(status) << machines << " machines of " << on_each << ": "
                          << describe_option(option) << ": " << status.error().message;
    }
  }
}

std::int64_t num_pieces_of(const Plan& plan, const std::string& tensor) {
  return std::ranges::count_if(
      plan.pieces, [&](const Piece& piece) { return plan.tensors[piece.tensor].name == tensor; });
}

TEST(Planner, CutsLargeTensorsBetweenOwners) {
  const Plan plan = plan_of(mixed_request("two_shot", 4));
  // 400000 bytes in bundles of 65536, each between four.
  EXPECT_EQ(num_pieces_of(plan, "large"), 7 * 4);
  EXPECT_EQ(num_pieces_of(plan, "matrix"), 1);
  EXPECT_EQ(num_pieces_of(plan, "small"), 1);
}

TEST(Planner, SendsSmallTensorsTogether) {
  PlanRequest request;
  request.plan = "allgather";
  request.world = 2;
  for (int i = 0; i < 100; ++i) request.tensors.push_back({"t" + std::to_string(i), 7, 1, kDense});
  const Plan plan = plan_of(request);
  EXPECT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.ranks[0].tasks.size(), 6u);  // encode, gather, clear, two decode_add, finish
}

// Alternating weights and biases make two messages, not one each.
TEST(Planner, SendsSmallTensorsOfACodecTogetherWhateverIsBetweenThem) {
  PlanRequest request = mixed_request("allgather", 2);
  request.tensors.clear();
  for (int i = 0; i < 50; ++i) {
    request.tensors.push_back({"weight" + std::to_string(i), 70, 1, 0});
    request.tensors.push_back({"bias" + std::to_string(i), 7, 1, kDense});
  }
  EXPECT_EQ(plan_of(request).groups.size(), 2u);
  // Tensors of another priority travel separately.
  for (std::size_t i = 40; i < request.tensors.size(); ++i) request.tensors[i].priority = -1;
  const Plan plan = plan_of(request);
  ASSERT_EQ(plan.groups.size(), 4u);
  EXPECT_EQ(plan.groups[0].pieces.size(), 20u);
  EXPECT_TRUE(check_plan(plan));
}

TEST(Planner, SharesSmallTensorsOutEvenly) {
  PlanRequest request;
  request.plan = "two_shot";
  request.world = 4;
  for (int i = 0; i < 10; ++i) request.tensors.push_back({"t" + std::to_string(i), 100, 1, kDense});
  const Plan plan = plan_of(request);
  for (const Group& group : plan.groups) {
    EXPECT_GE(group.pieces.size(), 2u);
    EXPECT_LE(group.pieces.size(), 3u);
  }
}

// Links do not idle while the owner of the first bundle computes.
TEST(Planner, BeginsBundlesBeforeOthersHaveEnded) {
  PlanRequest request = mixed_request("two_shot", 4);
  request.tensors = {{"large", 200000, 1, 0}};  // thirteen bundles
  const Plan plan = plan_of(request);
  std::string order;
  for (const Task& task : plan.ranks[1].tasks) {
    if (task.kind != TaskKind::Exchange) continue;
    order += task.exchange == ExchangeKind::AllToAll ? 'a' : 'g';
  }
  EXPECT_EQ(order,
            "aaaaaaaa"
            "agagagagag"
            "gggggggg");
}

TEST(Planner, ExchangesLengthsOnlyWhereTheyAreUnknown) {
  PlanRequest request = mixed_request("allgather", 2);
  request.lengths = LengthPolicy::Exchanged;
  const Plan plan = plan_of(request);
  for (const Task& task : plan.ranks[0].tasks) {
    if (task.kind != TaskKind::Exchange) continue;
    const bool is_unknown = plan.groups[task.groups[0]].codec == 1;
    const auto& slots = task.reads.empty() ? task.writes : task.reads;
    const bool is_length = plan.ranks[0].slots[slots[0]].capacity == 8;
    EXPECT_EQ(task.is_sized || is_length, is_unknown);
  }
}

// A vote counts every rank's payload.
TEST(Planner, DecodesEveryPayloadWhereFinishIsNotLinear) {
  for (const std::uint32_t world : kWorlds) {
    for (const std::string_view plan : plan_names()) {
      PlanRequest request = mixed_request(std::string(plan), world);
      request.codecs[0].takes_partial_sums = false;
      const auto built = build_plan(request);
      if (plan != "ring" && plan != "tree") {
        EXPECT_TRUE(built) << plan << ": " << built.error().message;
        continue;
      }
      ASSERT_FALSE(built) << plan << ", " << world;
      EXPECT_EQ(built.error().kind, ErrorKind::InvalidArgument);
      EXPECT_EQ(built.error().message,
                "cuts does not take the plan " + std::string(plan) +
                    ": its finish is not linear in the sum, so the payloads of all ranks are "
                    "decoded and added; it takes allreduce, allgather, two_shot, ps, hierarchical");
      EXPECT_FALSE(*build_plan_if_taken(request));
      request.tensors = {{"bias", 10, 1, kDense}, {"matrix", 300, 40, 1}};  // of other codecs
      EXPECT_TRUE(build_plan(request));
    }
  }
}

// Machines of several ranks add gradients before anything is encoded, except in options that begin
// with encoding.
TEST(Planner, DecodesEveryPayloadOfAMachineWhereFinishIsNotLinear) {
  PlanRequest request = mixed_request("hierarchical", 4);
  request.codecs[0].takes_partial_sums = false;
  request.ranks_per_machine = 2;
  const auto refused = build_plan(request);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.ends_with("it takes allreduce, allgather, two_shot, ps"))
      << refused.error().message;
  using Action = OptionAction;
  using Scope = OptionScope;
  request.option = {{Action::Compress},
                    {Action::AllToAll, Scope::Intra, OptionDevice::Gpu, true},
                    {Action::AllToAll, Scope::Inter, OptionDevice::Gpu, true},
                    {Action::Decompress},
                    {Action::AllGather, Scope::Inter},
                    {Action::AllGather, Scope::Intra}};
  EXPECT_TRUE(build_plan(request));
  for (const ExchangeOption& option : all_exchange_options({.has_cpu = false})) {
    request.option = option;
    if (option.front().action != Action::Compress) {
      EXPECT_FALSE(build_plan(request)) << describe_option(option);
    } else if (num_compressions(option) == 1) {
      EXPECT_TRUE(build_plan(request)) << describe_option(option);
    }
  }
}

TEST(Planner, RefusesWhatItCannotDo) {
  EXPECT_FALSE(build_plan(mixed_request("star", 2)));
  EXPECT_FALSE(build_plan(mixed_request("ring", 0)));
  PlanRequest request = mixed_request("ps", 2);
  for (const auto& servers : {std::vector<std::uint32_t>{}, {2}, {0, 0}}) {
    request.servers = servers;
    EXPECT_FALSE(build_plan(request));
  }
  request.servers = {0};
  request.ranks_per_machine = 3;
  EXPECT_FALSE(build_plan(request));
  request.ranks_per_machine = 1;
  request.tensors[0].codec = 4;
  EXPECT_FALSE(build_plan(request));
}

}  // namespace
}  // namespace cinch::rt
