// Errors that check_plan finds: plans with one defect of each kind, each compared with its sound
// twin.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/plan/check_plan.h"
#include "runtime/plan/plan.h"
#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

// The n-th task of this kind; exchanges are counted by kind.
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
    {"PartSkipped", "ring", "not the next part",
     [](Plan& plan) {
       const auto is_second = [](const Task& t) { return t.kind == TaskKind::Part && t.part == 1; };
       std::ranges::find_if(plan.ranks[1].tasks, is_second)->part = 2;
     }},
    {"PartAlone", "ring", "one piece with a program",
     [](Plan& plan) { find_task(plan, 1, TaskKind::Part).groups = {0}; }},
    {"PartWithAnotherCollective", "tree", "does not ask for",
     [](Plan& plan) { find_task(plan, 2, TaskKind::Part).reduction = RankReduction::Max; }},
    {"PartGivesToNobody", "tree", "does not ask for",
     [](Plan& plan) {
       Task& part = find_task(plan, 0, TaskKind::Part);
       part.writes[0] = static_cast<std::uint32_t>(plan.ranks[0].slots.size());
       plan.ranks[0].slots.push_back({plan.ranks[0].wire_bytes++, 1, kNoSlot});
     }},
    {"PartsOutOfOrder", "tree", "is not ordered with task",
     [](Plan& plan) {
       auto& tasks = plan.ranks[0].tasks;
       for (Task& task : tasks) {
         if (!task.is_last_part()) continue;
         std::erase_if(task.after, [&](std::uint32_t earlier) {
           return tasks[earlier].kind == TaskKind::Part;
         });
       }
     }},
    {"LastPartGives", "tree", "is the last part, and writes values that nothing sends",
     [](Plan& plan) {
       for (Task& task : plan.ranks[0].tasks) {
         if (task.is_last_part()) task.writes = {0};
       }
     }},
    {"PartMissing", "tree", "the next part",
     [](Plan& plan) {
       for (RankPlan& rank : plan.ranks) {
         for (Task& task : rank.tasks) {
           // Not for a tensor without elements, which has no other part.
           if (!task.is_last_part() || task.part == 0) continue;
           task.kind = TaskKind::Clear;
           task.reads.clear();
           return;
         }
       }
     }},
    {"PieceMissing", "ring", "not covered", [](Plan& plan) { plan.pieces[3].num_elems -= 1; }},
    {"PieceOverlaps", "ring", "not covered",
     [](Plan& plan) {
       plan.groups[0].pieces.push_back(static_cast<std::uint32_t>(plan.pieces.size()));
       plan.pieces.push_back({plan.pieces[0].tensor, 99, 1, 2, 64});
     }},
    {"ShapeOverflows", "ring", "too many elements",
     [](Plan& plan) { plan.tensors[0].rows = plan.tensors[0].cols = std::int64_t{1} << 40; }},
    {"ShapeNegative", "ring", "fewer than none",
     [](Plan& plan) {
       plan.tensors[0].rows = -plan.tensors[0].rows;
       plan.tensors[0].cols = -plan.tensors[0].cols;
     }},
    {"PieceEndsBeyondAllNumbers", "ring", "not covered",
     [](Plan& plan) { plan.pieces[3].num_elems = INT64_MAX; }},
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
       // The second decoding waits for the clearing and for its payload, not for the first
       // decoding.
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
       // A later bundle's encoding overwrites slots that this one receives.
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
       // Nobody fills the slots now, so their readers are removed, too.
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

TEST(PlanText, CutsNoNumberOff) {
  const std::string text = plan_to_json(plan_of(mixed_request("ring", 2)));
  for (const char* number : {"-1", "1.5", "4294967296", "18446744073709551616", "\"1\"", "[1]"}) {
    for (const char* key : {"\"peer\":", "\"num_elems\":", "\"capacity\":", "\"wire_bytes\":"}) {
      std::string changed = text;
      const auto at = changed.find(key) + std::string_view(key).size();
      changed.replace(at, changed.find_first_of(",}", at) - at, number);
      const auto read = plan_from_json(changed);
      EXPECT_TRUE(!read || plan_to_json(*read) == changed) << key << number;
    }
  }
  std::string changed = text;
  changed.replace(changed.find("\"after\":[]"), 10, "\"after\":5");
  EXPECT_FALSE(plan_from_json(changed));
}

TEST(PlanText, WritesNamesThatAreNoUtf8) {
  Plan plan = plan_of(mixed_request("ring", 2));
  plan.tensors[0].name = "\xff\xfe";
  const auto read = plan_from_json(plan_to_json(plan));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->pieces, plan.pieces);
}

TEST(PlanDigest, ChangesWithEachNumber) {
  PlanRequest request = mixed_request("ring", 2);
  request.tensors = {{"large", 20000, 1, 0}, {"bias", 10, 1, kDense}};
  const Plan plan = plan_of(request);
  const auto whole = nlohmann::json::parse(plan_to_json(plan));
  const auto numbers = whole.flatten();
  int num_changed = 0;
  for (const auto& [path, value] : numbers.items()) {
    if (!value.is_number_unsigned() && !value.is_boolean()) continue;
    auto changed = whole;
    auto& place = changed[nlohmann::json::json_pointer(path)];
    if (value.is_boolean()) {
      place = !value.get<bool>();
    } else {
      place = value.get<std::uint64_t>() ^ 1U;
    }
    const auto read = plan_from_json(changed.dump());
    if (!read) continue;  // the number of the format
    if (path.starts_with("/ranks/1/")) {
      EXPECT_EQ(plan_digest(*read), plan_digest(plan)) << path;  // other ranks do not have it
      continue;
    }
    ++num_changed;
    EXPECT_NE(plan_digest(*read), plan_digest(plan)) << path;
  }
  EXPECT_GT(num_changed, 200);
  EXPECT_EQ(plan_digest(plan), plan_digest(plan_of(request)));
}

}  // namespace
}  // namespace cinch::rt
