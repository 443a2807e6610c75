// Ranks that disagree, fail, hang, die or send garbage: every rank gets an error in time, states
// are those of the last step that succeeded, and other ranks can go on in the same process.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/collective/support/faulty_transport.h"
#include "tests/collective/support/step_faults.h"
#include "tests/collective/support/sync_ranks.h"
#include "tests/two_threads.h"

namespace cinch::testing {
namespace {

// Short if a test waits for it, else long enough for a busy machine.
constexpr std::chrono::milliseconds kShort{1000}, kLong{20000};

SyncCase make_case(const std::string& program, std::string_view plan, std::uint32_t world,
                   std::int64_t elements = 5000) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.piece_bytes = 8192;
  request.lengths = rt::LengthPolicy::Exchanged;
  request.tensors = {{"fc1", elements, 1, 0}, {"fc2", 11, 1, 0}};
  return make_sync_case(program.empty() ? nullptr : compiled_library(program), request);
}

rt::SyncOptions options_of(const SyncCase& from, std::chrono::milliseconds timeout = kLong) {
  return {.plan = from.plan,
          .programs = from.programs,
          .threads = 1,
          .seed = from.seed,
          .timeout = timeout};
}

// ---- two threads ----

TEST(SyncUse, OneSessionFromTwoThreads) {
  const SyncCase one_case = make_case("ef_sign", "two_shot", 1);
  rt::LoopbackWorld world(1);
  const auto transport = world.transport(0);
  const auto session = rt::SyncSession::open(options_of(one_case), *transport);
  ASSERT_TRUE(session) << session.error().message;
  const Tensors gradients = make_gradients(*one_case.plan, 0, 0);
  const auto is_done = [](const auto& result) {
    if (result) return true;
    EXPECT_NE(result.error().message.find("in use by another thread"), std::string::npos)
        << result.error().message;
    return false;
  };
  call_from_two_threads(40, [&](int thread, int turn) {
    Tensors updates;
    switch ((turn + thread) % 4) {
      case 0:
        return is_done((*session)->save_states());
      case 1:
        return is_done((*session)->visit_states([](const auto&, auto&) {}));
      default:
        return is_done(step_on(**session, gradients, updates, static_cast<std::uint64_t>(turn)));
    }
  });
  EXPECT_TRUE((*session)->give_up({rt::ErrorKind::Cancelled, "the end"}));
}

// ---- agreement ----

// Opens sessions whose options `change` modifies on rank 2; returns the errors by rank.
std::vector<std::string> errors_of_opening(const SyncCase& common,
                                           const std::function<void(rt::SyncOptions&)>& change) {
  std::vector<std::string> errors(3);
  rt::LoopbackWorld world(3);
  run_ranks(world, 3, [&](const RankBody& own) {
    rt::SyncOptions options = options_of(common);
    if (own.rank == 2) change(options);
    const auto session = rt::SyncSession::open(options, own.transport);
    if (!session) errors[own.rank] = session.error().message;
  });
  return errors;
}

void expect_everywhere(const std::vector<std::string>& errors, const std::string& text) {
  for (const std::string& error : errors) {
    EXPECT_NE(error.find(text), std::string::npos) << '"' << error << '"';
  }
}

TEST(Agreement, EqualRanksOpen) {
  const SyncCase common = make_case("ef_sign", "two_shot", 3);
  const auto errors = errors_of_opening(common, [](rt::SyncOptions&) {});
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(Agreement, EveryRankLearnsWhoHasWhat) {
  const SyncCase common = make_case("topk(ratio: 0.1)", "two_shot", 3);
  const auto errors = errors_of_opening(common, [](rt::SyncOptions& options) { options.seed = 4; });
  expect_everywhere(errors, "rank 2 has the seed 4");
  expect_everywhere(errors, "ranks 0, 1 have the seed 17");
}

TEST(Agreement, FindsOtherProgramsTensorsAndPlans) {
  const SyncCase common = make_case("ef_sign", "two_shot", 3);
  const Programs others = {compiled_library("onebit")};
  expect_everywhere(
      errors_of_opening(common, [&](rt::SyncOptions& options) { options.programs = others; }),
      "rank 2 has program");
  const SyncCase longer = make_case("ef_sign", "two_shot", 3, 5001);
  expect_everywhere(
      errors_of_opening(common, [&](rt::SyncOptions& options) { options.plan = longer.plan; }),
      "rank 2 has tensor fc1 of 5001 x 1");
  const SyncCase ring = make_case("ef_sign", "ring", 3);
  expect_everywhere(
      errors_of_opening(common, [&](rt::SyncOptions& options) { options.plan = ring.plan; }),
      "rank 2 has plan ring");
}

TEST(Agreement, ARankThatCannotOpenTellsTheOthers) {
  const SyncCase common = make_case("ef_sign", "two_shot", 3);
  const auto errors =
      errors_of_opening(common, [](rt::SyncOptions& options) { options.programs.clear(); });
  EXPECT_EQ(errors[2], "fc1: no such program");
  EXPECT_NE(errors[0].find("rank 2 gave up: fc1: no such program"), std::string::npos);
}

TEST(Agreement, ParametersAreThoseOfRankZero) {
  const SyncCase common = make_case("threshold(tau: 0.5)", "allgather", 2);
  const rt::ProgramInfo& info = common.programs[0]->info();
  ASSERT_TRUE(info.params.empty());  // bound by the expression: nothing is left to set
  const SyncCase open = make_case("error_feedback(threshold)", "allgather", 2);
  ASSERT_FALSE(open.programs[0]->info().params.empty());
  const std::string name = open.programs[0]->info().params.back().name;
  std::vector<Tensors> updates(2), others(2);
  rt::LoopbackWorld world(2);
  run_ranks(world, 2, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(options_of(open), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    const Tensors gradients = make_gradients(*open.plan, own.rank, 0);
    ASSERT_TRUE(step_on(**session, gradients, others[own.rank], 0));
    if (own.rank == 0) {
      const rt::Status set = (*session)->set_parameter(0, name, 1000);
      ASSERT_TRUE(set) << set.error().message;
    }
    EXPECT_FALSE((*session)->set_parameter(0, "nothing", 1));
    EXPECT_FALSE((*session)->set_parameter(1, name, 1));
    ASSERT_TRUE(step_on(**session, gradients, updates[own.rank], 1));
  });
  EXPECT_EQ(updates[0], updates[1]);
  // No value exceeds the new threshold on either rank.
  for (const auto& tensor : updates[0]) {
    EXPECT_TRUE(std::ranges::all_of(tensor, [](float x) { return x == 0; }));
  }
  EXPECT_NE(others[0], updates[0]);
}

TEST(Agreement, ParametersThatThePlanHasNoRoomForAreRefused) {
  const SyncCase common = make_case("error_feedback(topk)", "two_shot", 2);
  const rt::ProgramInfo& info = common.programs[0]->info();
  ASSERT_FALSE(info.params.empty());
  const rt::ParamInfo& ratio = info.params.back();
  rt::LoopbackWorld world(2);
  run_ranks(world, 2, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(options_of(common), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    const rt::Status more = (*session)->set_parameter(0, ratio.name, ratio.default_value * 2);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().kind, rt::ErrorKind::OutOfRange);
    EXPECT_NE(more.error().message.find("the plan has room for"), std::string::npos)
        << more.error().message;
    // Nothing has changed: smaller payloads fit, and steps go on.
    EXPECT_TRUE((*session)->set_parameter(0, ratio.name, ratio.default_value / 2));
    EXPECT_TRUE((*session)->set_parameter(0, ratio.name, ratio.default_value));
    Tensors updates;
    EXPECT_TRUE(step_on(**session, make_gradients(*common.plan, own.rank, 0), updates, 0));
  });
}

// ---- faults in a step ----

struct FaultRun {
  std::vector<std::string> errors;  // by rank, of the step with the fault
  bool has_struck = false;
};

// Step 0 is sound; in step 1 rank 1's exchange number `at` has the fault.
FaultRun run_fault(const SyncCase& one_case, FaultKind kind, std::uint64_t at) {
  const std::uint32_t num_ranks = one_case.plan->world();
  FaultRun run;
  run.errors.resize(num_ranks);
  rt::LoopbackWorld world(num_ranks);
  run_ranks(world, num_ranks, [&](const RankBody& own) {
    FaultyTransport transport(own.transport);
    const auto timeout = kind == FaultKind::Hangs ? kShort : kLong;
    auto session = rt::SyncSession::open(options_of(one_case, timeout), transport);
    ASSERT_TRUE(session) << session.error().message;
    Tensors updates;
    ASSERT_TRUE(step_on(**session, make_gradients(*one_case.plan, own.rank, 0), updates, 0));
    const States before = states_of(**session);
    if (own.rank == 1) transport.arm(kind, at);
    const rt::Status status =
        step_on(**session, make_gradients(*one_case.plan, own.rank, 1), updates, 1);
    if (own.rank == 1) run.has_struck = transport.has_struck();
    if (status) return;
    run.errors[own.rank] = status.error().message;
    EXPECT_EQ(states_of(**session), before) << "rank " << own.rank;
    const rt::Status later =
        step_on(**session, make_gradients(*one_case.plan, own.rank, 2), updates, 2);
    ASSERT_FALSE(later);
    EXPECT_NE(later.error().message.find("an earlier step has failed"), std::string::npos);
  });
  return run;
}

class EachPlanWithFaults : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EachPlanWithFaults, EndsOnAllRanks) {
  const SyncCase one_case = make_case("ef_sign", GetParam(), 3);
  for (const FaultKind kind : {FaultKind::Fails, FaultKind::FailsLater, FaultKind::Hangs}) {
    for (std::uint64_t at = 0;; at += kind == FaultKind::Hangs ? 5 : 1) {
      const FaultRun run = run_fault(one_case, kind, at);
      if (!run.has_struck) {
        EXPECT_GT(at, 0u);
        break;
      }
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        const std::string& error = run.errors[rank];
        const std::string where = std::string(GetParam()) + " " + fault_kind_name(kind) + " at " +
                                  std::to_string(at) + ", rank " + std::to_string(rank);
        ASSERT_NE(error, "") << where;
        // The others learn whose fault it is, and in which phase of which tensor.
        if (rank == 1 || kind == FaultKind::Hangs) continue;
        EXPECT_NE(error.find("rank 1 gave up"), std::string::npos) << where << ": " << error;
        EXPECT_NE(error.find("on fire"), std::string::npos) << where << ": " << error;
      }
      if (HasFailure()) return;
    }
  }
}

TEST_P(EachPlanWithFaults, LateRanksAreWaitedFor) {
  const SyncCase one_case = make_case("ef_sign", GetParam(), 3);
  for (std::uint64_t at = 0; at < 4; ++at) {
    const FaultRun run = run_fault(one_case, FaultKind::Late, at);
    for (const std::string& error : run.errors) {
      EXPECT_EQ(error, "") << GetParam() << " at " << at;
    }
  }
}

TEST_P(EachPlanWithFaults, GarbageIsFound) {
  const SyncCase one_case = make_case("topk(ratio: 0.1)", GetParam(), 3);
  // A length, then a payload.
  for (const std::uint64_t at : {0, 1}) {
    const FaultRun run = run_fault(one_case, FaultKind::Garbage, at);
    EXPECT_TRUE(run.has_struck);
    for (const std::string& error : run.errors) EXPECT_NE(error, "") << GetParam() << " at " << at;
  }
}

// No check of a payload finds altered bytes of plain f32, or of an update.
TEST(Faults, ReplicasThatDifferAreFound) {
  for (const auto& [program, plan, at] :
       {std::tuple("", "allgather", 0), {"", "two_shot", 4}, {"fp16", "allgather", 0}}) {
    const FaultRun run = run_fault(make_case(program, plan, 3), FaultKind::GarbageInPayloads,
                                   static_cast<std::uint64_t>(at));
    EXPECT_TRUE(run.has_struck);
    for (const std::string& error : run.errors) {
      EXPECT_NE(error.find("different updates"), std::string::npos) << program << plan << error;
      EXPECT_NE(error.find("fc1 on rank 1 and on ranks 0, 2"), std::string::npos) << error;
    }
  }
}

// Alters what a rank hears of the other ranks' arrays, at every meeting of a `sync` in turn.
class AlteringTransport : public ForwardingTransport {
 public:
  AlteringTransport(rt::Transport& inner, std::uint64_t at, std::size_t word)
      : ForwardingTransport(inner), at_(at), word_(word) {}
  bool has_struck() const { return num_met_ > at_; }

  rt::Result<rt::Ticket> start(const rt::Exchange& exchange) override {
    const auto ticket = ForwardingTransport::start(exchange);
    const bool meets =
        exchange.kind == rt::ExchangeKind::AllGather && exchange.input.size() == 4 * kWordBytes;
    if (ticket && meets && num_met_++ == at_) struck_ = {ticket->index, exchange.output};
    return ticket;
  }
  rt::Result<bool> test(rt::Ticket ticket) override {
    const auto is_over = ForwardingTransport::test(ticket);
    if (!struck_ || struck_->first != ticket.index || !is_over || !*is_over) return is_over;
    const std::size_t other = (rank() + 1) % world();
    struck_->second[(4 * other + word_) * kWordBytes] ^= 0x5a;
    struck_.reset();
    return is_over;
  }

 private:
  static constexpr std::size_t kWordBytes = 8;
  const std::uint64_t at_;
  const std::size_t word_;
  std::uint64_t num_met_ = 0;
  std::optional<std::pair<std::uint32_t, std::span<std::uint8_t>>> struck_;
};

TEST(Faults, AlteredWordsOfMeetingsAreNoFaultOfCinch) {
  const SyncCase one_case = make_case("oktopk", "allgather", 3, 500);
  for (const std::size_t word : {0, 2, 3}) {  // its state, its bytes, its room
    for (std::uint64_t at = 0, more = 1; more != 0; ++at) {
      std::array<rt::Status, 3> ends;
      rt::LoopbackWorld world(3);
      run_ranks(world, 3, [&](const RankBody& own) {
        AlteringTransport altering(own.transport, at, word);
        rt::Transport& transport = own.rank == 1 ? altering : own.transport;
        auto session = rt::SyncSession::open(options_of(one_case, kShort), transport);
        ASSERT_TRUE(session) << session.error().message;
        Tensors updates;
        ends[own.rank] =
            step_on(**session, make_gradients(*one_case.plan, own.rank, 0), updates, 0);
        if (own.rank == 1 && !altering.has_struck()) more = 0;
      });
      for (const rt::Status& status : ends) {
        if (status) continue;
        EXPECT_NE(status.error().kind, rt::ErrorKind::Internal)
            << "word " << word << " of meeting " << at << ": " << status.error().message;
      }
      if (HasFailure()) return;
    }
  }
}

TEST(Faults, UpdatesOfLocalProgramsAreNotCompared) {
  for (const char* body :
       {"sync(g: [f32; n]) { g + allreduce(g, sum) * 0.0 }\nclaims local",
        "wire { v: [f32; n] }\nencode(g: [f32; n]) { wire { v: g } }\ndecode(w) { w.v }\n"
        "finish(sum) { sum * select(worker == 0, 1.0, 2.0) }\nclaims local"}) {
    const std::string text = std::string("compressor own {\n") + body + "\n}";
    rt::PlanRequest request;
    request.plan = "allgather";
    request.world = 3;
    request.tensors = {{"fc1", 500, 1, 0}};
    for (const StepResult& result :
         run_steps(make_sync_case(compiled_text("own", text), request))) {
      for (const std::string& error : result.errors) EXPECT_EQ(error, "") << text;
      EXPECT_FALSE(are_same(result.updates[0], result.updates[1])) << text;
    }
  }
}

// What one rank sends to another may end alike or not. Nobody knows before the step.
TEST(Faults, AnUpdateThatRanksGetFromOneAnotherIsCompared) {
  rt::PlanRequest request;
  request.plan = "allgather";
  request.world = 3;
  request.tensors = {{"fc1", 500, 1, 0}};
  const std::string text =
      "compressor moved {\n  sync(g: [f32; n]) { sendrecv(g, to: (worker + 1) % world) }\n}";
  for (const StepResult& result :
       run_steps(make_sync_case(compiled_text("moved", text), request))) {
    for (const std::string& error : result.errors) {
      EXPECT_NE(error.find("ranks have different updates"), std::string::npos) << error;
      EXPECT_NE(error.find("fc1"), std::string::npos) << error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, EachPlanWithFaults,
                         ::testing::Values("allgather", "two_shot", "ring", "ps", "tree",
                                           "hierarchical"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Faults, ASilentRankIsNamed) {
  const SyncCase one_case = make_case("ef_sign", "allgather", 3);
  std::vector<std::string> errors(3);
  std::mutex mutex;
  rt::LoopbackWorld world(3);
  run_ranks(world, 3, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(options_of(one_case, kShort), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    // Rank 2 is busy for longer than the others wait.
    if (own.rank == 2) return std::this_thread::sleep_for(3 * kShort);
    Tensors updates;
    const rt::Status status =
        step_on(**session, make_gradients(*one_case.plan, own.rank, 0), updates, 0);
    ASSERT_FALSE(status);
    const std::lock_guard lock(mutex);
    errors[own.rank] = status.error().message;
  });
  EXPECT_NE((errors[0] + errors[1]).find("all_gather of fc1"), std::string::npos) << errors[0];
  EXPECT_NE((errors[0] + errors[1]).find("waits for rank 2"), std::string::npos) << errors[0];
}

TEST(Faults, ARankThatDiesEndsTheStepOfTheOthers) {
  for (const std::string_view plan : {"allgather", "two_shot", "ring", "ps", "tree"}) {
    const SyncCase one_case = make_case("ef_sign", plan, 4);
    rt::LoopbackWorld world(4);
    run_ranks(world, 4, [&](const RankBody& own) {
      auto session = rt::SyncSession::open(options_of(one_case), own.transport);
      ASSERT_TRUE(session) << session.error().message;
      if (own.rank == 3) return;
      Tensors updates;
      const rt::Status status =
          step_on(**session, make_gradients(*one_case.plan, own.rank, 0), updates, 0);
      ASSERT_FALSE(status) << plan;
      EXPECT_EQ(status.error().kind, rt::ErrorKind::Cancelled) << status.error().message;
    });
    // Three ranks go on.
    SyncCase fewer = make_case("ef_sign", plan, 3);
    fewer.num_steps = 1;
    const auto results = run_steps(fewer);
    for (const std::string& error : results[0].errors) EXPECT_EQ(error, "") << plan;
  }
}

TEST(Faults, DifferentStepsAreFound) {
  const SyncCase one_case = make_case("ef_sign", "allgather", 2);
  rt::LoopbackWorld world(2);
  run_ranks(world, 2, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(options_of(one_case), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    const States before = states_of(**session);
    Tensors updates;
    const Tensors gradients = make_gradients(*one_case.plan, own.rank, 0);
    const rt::Status status = step_on(**session, gradients, updates, own.rank);
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("step"), std::string::npos);
    EXPECT_EQ(states_of(**session), before);
  });
}

TEST(Faults, OtherTensorsAreRefused) {
  const SyncCase one_case = make_case("ef_sign", "allgather", 1);
  rt::LoopbackWorld world(1);
  const auto transport = world.transport(0);
  auto session = rt::SyncSession::open(options_of(one_case), *transport);
  ASSERT_TRUE(session) << session.error().message;
  Tensors gradients = make_gradients(*one_case.plan, 0, 0), updates;
  gradients[1].pop_back();
  const rt::Status status = step_on(**session, gradients, updates, 0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "fc2: the gradient has 10 elements, but the plan has 11 for this tensor: give the "
            "tensors that "
            "the plan was made for");
}

// A NaN on one rank becomes a NaN in that piece's update on all ranks, and no error.
TEST(Faults, NonFiniteGradientsReachAllRanks) {
  for (const std::string_view plan : rt::plan_names()) {
    const SyncCase one_case = make_case("ef_sign", plan, 3);
    std::vector<Tensors> updates(3);
    rt::LoopbackWorld world(3);
    run_ranks(world, 3, [&](const RankBody& own) {
      auto session = rt::SyncSession::open(options_of(one_case), own.transport);
      ASSERT_TRUE(session) << session.error().message;
      Tensors gradients = make_gradients(*one_case.plan, own.rank, 0);
      if (own.rank == 1) gradients[0][7] = std::numeric_limits<float>::quiet_NaN();
      ASSERT_TRUE(step_on(**session, gradients, updates[own.rank], 0)) << plan;
    });
    for (const Tensors& update : updates) {
      EXPECT_TRUE(std::isnan(update[0][7])) << plan;
      EXPECT_FALSE(std::isnan(update[1][0])) << plan;
    }
  }
}

}  // namespace
}  // namespace cinch::testing
