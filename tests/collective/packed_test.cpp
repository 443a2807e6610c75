// Exchanges of bool and of integers of fewer than 8 bits: the oracle's bits, in as many bytes as
// the bits of elements take.
#include <gtest/gtest.h>

#include "tests/collective/support/plan_cases.h"

namespace cinch::testing {
namespace {

// Every exchange, of widths that do and do not divide a byte. What ranks get is different.
constexpr const char* kNarrow = R"(
compressor narrow {
  sync(g: [f32; n]) {
    let signs = allgather(g < 0)
    let thirds = allgather(clamp(g * 2 + (worker as f32), -4, 3) as i3)
    let rows = map(iota(world * 5), |i| (i * 7 + (worker as u32) * 3) % 32)
    let swapped = all_to_all(reshape(rows as u5, world, 5))
    let halves = all_to_all(reshape(rows < 16, world, 5))
    let said = broadcast(clamp(g * 3, -8, 7) as i4, root: 0)
    let mine = reshape(sum(select(signs, 1.0, 0.25), axis: 0), n)
    let own = mine + reshape(sum(thirds as f32, axis: 0), n) + (said as f32) +
      (sum(swapped as u32) as f32) + sum(select(halves, 0.5, 0.0))
    allreduce(own * ((worker as f32) + 1), sum)
  }
}
)";

// Values decide the receivers: one task.
constexpr const char* kSent = R"(
compressor sent {
  sync(g: [f32; n]) {
    let sign = sendrecv(g < 0, to: (worker + 1) % world)
    let value = sendrecv(clamp(g * 4, -16, 15) as i5, to: world - 1 - worker)
    let own = select(sign, 100.0, 0.0) + (value as f32)
    allreduce(own * ((worker as f32) + 1), sum)
  }
}
)";

SyncCase tensors_of(const std::shared_ptr<const rt::LoadedProgram>& program, std::uint32_t world,
                    std::vector<rt::PlanTensor> tensors) {
  rt::PlanRequest request;
  request.plan = "two_shot";
  request.world = world;
  request.tensors = std::move(tensors);
  return make_sync_case(program, request);
}

TEST(PackedExchanges, GiveWhatTheOracleGives) {
  for (const auto& program : {compiled_text("narrow", kNarrow), compiled_text("sent", kSent)}) {
    for (const std::uint32_t world : {1U, 2U, 5U}) {
      const SyncCase one_case =
          tensors_of(program, world, {{"fc1", 1003, 1, 0}, {"fc2", 64, 1, 0}, {"fc3", 1, 1, 0}});
      check_steps(one_case, std::to_string(world) + " ranks");
      if (HasFatalFailure()) return;
    }
  }
}

// Each of 4 ranks keeps a quarter of its bits and sends the rest, in two rounds: 1.5 bits per
// element. The rest are four scales and how rounds end.
TEST(PackedExchanges, OneBitAdamSendsBits) {
  constexpr std::uint32_t kWorld = 4;
  constexpr std::int64_t kElements = 603498;
  SyncCase one_case =
      tensors_of(compiled_library("onebit_adam(freeze: 1)"), kWorld, {{"fc", kElements, 1, 0}});
  rt::LoopbackWorld world(kWorld);
  run_ranks(world, kWorld, [&](const RankBody& own) {
    auto session = rt::SyncSession::open(sync_options(one_case, own.rank), own.transport);
    ASSERT_TRUE(session) << session.error().message;
    Tensors updates;
    ASSERT_TRUE(step_on(**session, gradients_of(one_case, own.rank, 0), updates, 0));
    const std::uint64_t before = own.transport.sent_bytes();
    ASSERT_TRUE(step_on(**session, gradients_of(one_case, own.rank, 1), updates, 1));
    const double sent = static_cast<double>(own.transport.sent_bytes() - before);
    EXPECT_NEAR(sent, 1.5 / 8 * kElements, 1000);
  });
}

}  // namespace
}  // namespace cinch::testing
