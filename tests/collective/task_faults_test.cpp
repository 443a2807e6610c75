// Any computing task of a rank fails, or takes too long: all ranks get an error, in time.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "runtime/device/compute_device.h"
#include "runtime/sync/device/device_tasks.h"
#include "runtime/sync/plan_runner.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {
namespace {

using rt::TaskKind;

constexpr std::uint32_t kWorld = 3, kFaulty = 1;
constexpr std::chrono::milliseconds kStandstill{300}, kTooLong{1500}, kPatience{60000};

enum class TaskFault : std::uint8_t { Fails, Stalls };

// Forwards to another object, except for the first task of a kind that computes a piece of the
// first tensor: which of a rank's tasks of that kind is the first depends on when messages come.
class FaultyTasks : public rt::RankTasks {
 public:
  FaultyTasks(const rt::Plan& plan, rt::RankTasks& to, TaskKind kind, TaskFault fault)
      : plan_(plan), to_(to), kind_(kind), fault_(fault) {}

  bool has_struck() const { return has_struck_; }

  rt::Status run(const rt::Task& task, rt::PieceMemory& memory) override {
    if (task.kind != kind_ || has_struck_ || !is_of_first_tensor(task)) {
      return to_.run(task, memory);
    }
    has_struck_ = true;
    if (fault_ == TaskFault::Fails) return rt::fail(rt::ErrorKind::Device, "a planted fault");
    std::this_thread::sleep_for(kTooLong);
    return to_.run(task, memory);
  }
  rt::Status set_parameter(std::uint32_t codec, std::string_view name, double value) override {
    return to_.set_parameter(codec, name, value);
  }
  rt::Status begin_step(std::uint64_t step) override { return to_.begin_step(step); }
  const rt::ProtocolParts& protocols() const override { return to_.protocols(); }
  rt::Status synchronise(const rt::Task& task, rt::PieceMemory& memory,
                         rt::RankExchange& ranks) override {
    return to_.synchronise(task, memory, ranks);
  }
  rt::Status end_step() override { return to_.end_step(); }
  void take_back_step() override { to_.take_back_step(); }
  void take_back(std::uint32_t piece) override { to_.take_back(piece); }
  rt::Status fill_update(std::uint32_t piece, Fill with, rt::PieceMemory& memory) override {
    return to_.fill_update(piece, with, memory);
  }
  rt::Status reset_states(std::uint32_t piece) override { return to_.reset_states(piece); }
  rt::SyncMemory memory_use() const override { return to_.memory_use(); }
  void visit_states(const rt::SiteVisitor& visit) override { to_.visit_states(visit); }

 private:
  bool is_of_first_tensor(const rt::Task& task) const {
    return std::ranges::any_of(task.groups, [this](std::uint32_t group) {
      return std::ranges::any_of(plan_.groups[group].pieces, [this](std::uint32_t piece) {
        return plan_.pieces[piece].tensor == 0;
      });
    });
  }

  const rt::Plan& plan_;
  rt::RankTasks& to_;
  TaskKind kind_;
  TaskFault fault_;
  bool has_struck_ = false;
};

struct FaultCase {
  std::string_view plan;
  const char* program;
  TaskKind kind;
};

SyncCase make_case(const FaultCase& of) {
  rt::PlanRequest request;
  request.plan = of.plan;
  request.world = kWorld;
  request.tensors = {{"fc1", 50000, 1, 0}, {"bias", 11, 1, rt::kDense}};
  return make_sync_case(compiled_library(of.program), request);
}

// Errors by rank. Other tests cover what a session does around its runner.
std::vector<rt::Error> errors_of(const FaultCase& of, TaskFault fault) {
  const SyncCase one_case = make_case(of);
  const std::chrono::milliseconds timeout = fault == TaskFault::Stalls ? kStandstill : kPatience;
  std::vector<rt::Error> errors(kWorld);
  rt::LoopbackWorld world(kWorld);
  run_ranks(world, kWorld, [&](const RankBody& own) {
    std::atomic<bool> cancelled{false};
    auto memory = rt::PieceMemory::make(*one_case.plan, own.rank);
    ASSERT_TRUE(memory) << memory.error().message;
    auto device = rt::open_cpu_device({one_case.programs, 1, &cancelled});
    auto tasks = rt::DeviceTasks::open(*one_case.plan, std::move(device),
                                       {.world = kWorld,
                                        .rank = own.rank,
                                        .seed = 17,
                                        .transport = &own.transport,
                                        .host_wire = memory->wire()});
    ASSERT_TRUE(tasks) << tasks.error().message;
    FaultyTasks faulty(*one_case.plan, **tasks, of.kind, fault);
    rt::RankTasks& compute = own.rank == kFaulty ? faulty : **tasks;
    const auto host = rt::open_cpu_device({.threads = 1});
    rt::StepTensors tensors(*one_case.plan, own.rank, *host,
                            std::vector<bool>(one_case.programs.size()));
    rt::PlanRunner runner(
        {*one_case.plan, own.transport, compute, *memory, tensors, cancelled, timeout});
    const Tensors gradients = make_gradients(*one_case.plan, own.rank, 0);
    Tensors updates = gradients;
    memory->bind(tensors.gradients(), tensors.updates());
    runner.begin(0);
    for (std::uint32_t t = 0; t < gradients.size(); ++t) {
      ASSERT_TRUE(tensors.set(t, gradients[t], updates[t]));
      runner.make_ready(t);
    }
    rt::Status status = runner.run([&] { return compute.begin_step(0); });
    // Every step ends with an exchange in which ranks meet whose last tasks nobody waited for.
    double meeting = 0;
    if (status) status = rt::take_largest(own.transport, {&meeting, 1}, timeout);
    EXPECT_FALSE(status) << "rank " << own.rank;
    if (!status) errors[own.rank] = status.error();
    EXPECT_EQ(faulty.has_struck(), own.rank == kFaulty);
  });
  return errors;
}

class EachTask : public ::testing::TestWithParam<FaultCase> {};

TEST_P(EachTask, ThatFailsEndsTheStepOfAllRanks) {
  const std::vector<rt::Error> errors = errors_of(GetParam(), TaskFault::Fails);
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    const std::string& text = errors[rank].message;
    EXPECT_NE(text.find("a planted fault"), std::string::npos) << rank << ": " << text;
    EXPECT_NE(text.find(rt::task_kind_name(GetParam().kind)), std::string::npos) << text;
    EXPECT_NE(text.find("fc1"), std::string::npos) << rank << ": " << text;
    if (rank != kFaulty) {
      EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
    }
  }
}

TEST_P(EachTask, ThatStallsIsNotWaitedForLonger) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<rt::Error> errors = errors_of(GetParam(), TaskFault::Stalls);
  const auto waits = [](const rt::Error& error) {
    return error.kind == rt::ErrorKind::TimedOut || error.kind == rt::ErrorKind::Cancelled;
  };
  EXPECT_TRUE(std::ranges::all_of(errors, waits));
  // One of the waiting ranks reports it.
  EXPECT_GT(std::ranges::count(errors, rt::ErrorKind::TimedOut, &rt::Error::kind), 0)
      << errors[0].message;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

INSTANTIATE_TEST_SUITE_P(
    TaskFaults, EachTask,
    ::testing::Values(FaultCase{"two_shot", "ef_sign", TaskKind::Clear},
                      FaultCase{"two_shot", "ef_sign", TaskKind::Encode},
                      FaultCase{"two_shot", "ef_sign", TaskKind::DecodeAdd},
                      FaultCase{"two_shot", "ef_sign", TaskKind::Finish},
                      FaultCase{"ring", "topk(ratio: 0.1)", TaskKind::Decode},
                      FaultCase{"ring", "topk(ratio: 0.1)", TaskKind::Add},
                      FaultCase{"allreduce", "fp16", TaskKind::Spread},
                      FaultCase{"allgather", "terngrad_shared", TaskKind::Part}),
    [](const auto& each) { return std::string(rt::task_kind_name(each.param.kind)); });

}  // namespace
}  // namespace cinch::testing
