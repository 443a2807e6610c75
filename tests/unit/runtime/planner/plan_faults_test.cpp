// What check_plan finds: a plan with one defect of each kind, beside its sound twin.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "runtime/plan/check_plan.h"
#include "runtime/plan/plan_text.h"
#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

// The n-th task of this kind; exchanges by what they exchange.
Task& find_task(Plan& plan, std::uint32_t rank, TaskKind kind,
                ExchangeKind exchange = ExchangeKind::Send) {
  auto& tasks = plan.ranks[rank].tasks;
  const auto found = std::ranges::find_if(tasks, [&](const Task& task) {
    return task.kind == kind && (kind != TaskKind::Exchange || task.exchange == exchange);
  });
  EXPECT_NE(found, tasks.end());
  return *found;
}

struct Fault {
  const char* name;
  const char* plan;
  const char* message;
  std::function<void(Plan&)> plant;
};

class EachFault : public testing::TestWithParam<Fault> {};

TEST_P(EachFault, IsFound) {
  const PlanRequest request = mixed_request(GetParam().plan, 3);
  Plan plan = plan_of(request);
  ASSERT_TRUE(check_plan(plan));
  GetParam().plant(plan);
  const Status status = check_plan(plan);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find(GetParam().message), std::string::npos)
      << status.error().message;
}

const Fault kFaults[] = {
    {"PieceMissing", "ring", "not covered", [](Plan& plan) { plan.pieces[3].num_elems -= 1; }},
    {"PieceTwice", "ring", "not in one group",
     [](Plan& plan) { plan.groups[1].pieces = plan.groups[0].pieces; }},
    {"OtherCodec", "ring", "another codec", [](Plan& plan) { plan.groups[0].codec = 0; }},
    {"SlotOutside", "ring", "not in the wire", [](Plan& plan) { plan.ranks[1].wire_bytes -= 1; }},
    {"NoSuchSlot", "ring", "no such slot",
     [](Plan& plan) { find_task(plan, 2, TaskKind::Encode).writes[0] = 99999; }},
    {"ForwardEdge", "ring", "later task", [](Plan& plan) { plan.ranks[0].tasks[1].after = {5}; }},
    {"ReadBeforeWritten", "two_shot", "before",
     [](Plan& plan) { find_task(plan, 0, TaskKind::DecodeAdd).after.clear(); }},
    {"SumNotCleared", "allgather", "reads the sum",
     [](Plan& plan) {
       Task& clear = find_task(plan, 0, TaskKind::Clear);
       clear.groups.clear();
     }},
    {"Unordered", "allgather", "not ordered",
     [](Plan& plan) {
       // The second decoding waits for the clearing and its payload, not for the first.
       auto& tasks = plan.ranks[0].tasks;
       std::size_t seen = 0;
       for (std::size_t t = 0; t < tasks.size(); ++t) {
         if (tasks[t].kind != TaskKind::DecodeAdd || ++seen != 2) continue;
         tasks[t].after = tasks[t - 1].after;
         return;
       }
     }},
    {"OverlappingSlots", "two_shot", "not ordered",
     [](Plan& plan) {
       auto& slots = plan.ranks[0].slots;
       const Task& task = find_task(plan, 0, TaskKind::Exchange, ExchangeKind::AllToAll);
       slots[task.writes[1]].offset = slots[task.writes[2]].offset;
       // Encoding of a later bundle over what this one receives.
       for (Task& each : plan.ranks[0].tasks) {
         if (each.kind == TaskKind::Encode && each.writes != task.reads && each.after.empty()) {
           slots[each.writes[0]].offset = slots[task.writes[1]].offset;
           return;
         }
       }
     }},
    {"UpdateMissing", "allgather", "writes the update",
     [](Plan& plan) { find_task(plan, 1, TaskKind::Finish).to = Value::Sum; }},
    {"CollectiveMissing", "allgather", "collectives",
     [](Plan& plan) {
       Task& task = find_task(plan, 1, TaskKind::Exchange, ExchangeKind::AllGather);
       task.kind = TaskKind::Clear;
       task.groups.clear();
       task.reads.clear();
       task.writes.clear();
       // Nobody fills the slots now: what read them is taken away, too.
       for (Task& each : plan.ranks[1].tasks) {
         if (each.kind == TaskKind::DecodeAdd) {
           each.kind = TaskKind::Add;
           each.reads.clear();
         }
       }
     }},
    {"OtherSize", "allgather", "another size",
     [](Plan& plan) {
       const Task task = find_task(plan, 1, TaskKind::Exchange, ExchangeKind::AllGather);
       plan.ranks[1].slots[task.writes[0]].capacity -= 4;
     }},
    {"OtherReduction", "allreduce", "rank 0 does",
     [](Plan& plan) {
       find_task(plan, 1, TaskKind::Exchange, ExchangeKind::AllReduce).reduction =
           RankReduction::Max;
     }},
    {"MessageToTheWrongRank", "ps", "messages",
     [](Plan& plan) {
       Task& task = find_task(plan, 1, TaskKind::Exchange, ExchangeKind::Send);
       task.peer = 2;
     }},
    {"MessageToItself", "ps", "no such rank",
     [](Plan& plan) { find_task(plan, 1, TaskKind::Exchange, ExchangeKind::Send).peer = 1; }},
    {"Deadlock", "ring", "deadlock",
     [](Plan& plan) {
       // Each rank sends its first message only when it has received one.
       for (auto& rank : plan.ranks) {
         std::size_t send = rank.tasks.size(), receive = send;
         for (std::size_t t = rank.tasks.size(); t-- > 0;) {
           if (rank.tasks[t].kind != TaskKind::Exchange) continue;
           (rank.tasks[t].exchange == ExchangeKind::Send ? send : receive) = t;
         }
         std::swap(rank.tasks[send], rank.tasks[receive]);
         rank.tasks[receive].after.push_back(static_cast<std::uint32_t>(send));
       }
     }},
};

INSTANTIATE_TEST_SUITE_P(CheckPlan, EachFault, testing::ValuesIn(kFaults),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(PlanText, RefusesWhatIsNoPlan) {
  for (const char* text : {"", "[]", "{}", R"({"format": 2})"}) EXPECT_FALSE(plan_from_json(text));
  std::string text = plan_to_json(plan_of(mixed_request("ring", 2)));
  text.replace(text.find("\"encode\""), 8, "\"encoda\"");
  EXPECT_FALSE(plan_from_json(text));
}

}  // namespace
}  // namespace cinch::rt
