// A check fails on one rank while it encodes, decodes, finishes or synchronises: every rank gets an
// error that names the tensor, states are those of the last step, and no rank keeps waiting.
#include <gtest/gtest.h>

#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {
namespace {

// Where the program rejects values above a thousand: in one rank's gradient, in decoded values, or
// in the sum. Both states change in every step.
std::string program_with(const std::string& encode, const std::string& decode,
                         const std::string& finish) {
  return R"(
compressor faulty {
  state residual: [f32; n] = 0
  state before: [f32; n] = 0
  wire { value: [f16; n] }
  encode(g: [f32; n]) {
    )" + encode +
         R"(
    let p = g + residual
    let value = p as f16
    residual = p - (value as f32)
    wire { value }
  }
  decode(w) {
    )" + decode +
         R"(
    w.value as f32
  }
  finish(total) {
    )" + finish +
         R"(
    let update = total / world
    before = update
    update
  }
  again exact
}
)";
}

constexpr const char* kProtocol = R"(
compressor faulty {
  state before: [f32; n] = 0
  sync(g: [f32; n]) {
    assert max(abs(g)) < 1000, "too large"
    let update = allreduce(g, sum) / world
    before = update
    update
  }
}
)";

SyncCase make_case(const std::string& text, std::string_view plan) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = 3;
  request.piece_bytes = 8192;
  request.tensors = {{"fc1", 5000, 1, 0}, {"fc2", 11, 1, 0}};
  return make_sync_case(compiled_text("faulty", text), request);
}

// Step 0 is sound; in step 1 rank 1 has a value that is too large, at the end of fc1.
std::vector<std::string> errors_of(const SyncCase& one_case) {
  std::vector<std::string> errors(3);
  rt::LoopbackWorld world(3);
  run_ranks(world, 3, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(
        {.plan = one_case.plan, .programs = one_case.programs, .threads = 1, .seed = 3},
        own.transport);
    ASSERT_TRUE(session) << session.error().message;
    Tensors updates;
    const rt::Status sound =
        step_on(**session, make_gradients(*one_case.plan, own.rank, 0), updates, 0);
    ASSERT_TRUE(sound) << sound.error().message;
    const States before = states_of(**session);
    EXPECT_FALSE(before.empty());
    Tensors gradients = make_gradients(*one_case.plan, own.rank, 1);
    if (own.rank == 1) gradients[0].back() = 5000;
    const rt::Status status = step_on(**session, gradients, updates, 1);
    errors[own.rank] = status ? "" : status.error().message;
    EXPECT_EQ(states_of(**session), before) << "rank " << own.rank;
  });
  return errors;
}

void expect_errors(const std::string& text, std::string_view plan) {
  const std::vector<std::string> errors = errors_of(make_case(text, plan));
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const std::string& error = errors[rank];
    EXPECT_NE(error.find("too large"), std::string::npos) << plan << ", " << rank << ": " << error;
    EXPECT_NE(error.find("fc1"), std::string::npos) << plan << ", " << rank << ": " << error;
  }
}

class ComputeFaultsOfPlan : public ::testing::TestWithParam<std::string_view> {};

TEST_P(ComputeFaultsOfPlan, ACheckThatFailsWhileEncoding) {
  expect_errors(program_with("assert max(abs(g)) < 1000, \"too large\"", "", ""), GetParam());
}

TEST_P(ComputeFaultsOfPlan, ACheckThatFailsWhileDecoding) {
  expect_errors(program_with("", "assert max(abs(w.value as f32)) < 1000, \"too large\"", ""),
                GetParam());
}

TEST_P(ComputeFaultsOfPlan, ACheckThatFailsWhileFinishing) {
  expect_errors(program_with("", "", "assert max(abs(total)) < 1000, \"too large\""), GetParam());
}

INSTANTIATE_TEST_SUITE_P(ComputeFaults, ComputeFaultsOfPlan,
                         ::testing::Values("allgather", "two_shot", "ring", "ps", "tree",
                                           "hierarchical"),
                         [](const auto& each) { return std::string(each.param); });

TEST(ComputeFaults, ACheckThatFailsInAProtocol) {
  expect_errors(kProtocol, "allgather");
}

}  // namespace
}  // namespace cinch::testing
