// Sessions on the emulated GPU whose sizes and loops follow the step.
#include <gtest/gtest.h>

#include <string>

#include "tests/programs/harness/gpu_session_fixture.h"

namespace cinch::testing {
namespace {

using rt::ErrorKind;

// A session is opened before the first step and has room for all of them.
TEST_F(GpuSessionTest, sizes_and_rounds_that_grow_with_the_step_have_room_from_the_start) {
  for (const auto& options : {rt::GpuSessionOptions(), many_launches()}) {
    auto session = open("warming", {3000}, options);
    auto cpu = open_on_cpu("warming", 3000);
    const GpuAddress from = upload(gradient(3000));
    for (const std::uint64_t step : {0, 2, 3, 8, 100}) {
      const auto bound = session.payload_bound(0, step);
      ASSERT_TRUE(bound);
      const GpuPayload to{allocate(static_cast<std::size_t>(*bound)), *bound};
      const auto status = session.encode({&from, 1}, {&to, 1}, step, nullptr);
      ASSERT_TRUE(status) << step << ": " << status.error().message;
      const auto bytes = static_cast<std::size_t>(collect(session).payload_bytes);
      EXPECT_EQ(download<std::uint8_t>(to.address, bytes), encode_on_cpu(cpu, gradient(3000), step))
          << step;
    }
  }
}

TEST_F(GpuSessionTest, a_size_that_grows_for_ever_is_named_at_opening) {
  rt::GpuSessionOptions options;
  options.tensors = {{300, 1, 0, 0}};
  const auto session = rt::GpuSession::open(load("growing"), options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ErrorKind::OutOfMemory);
  EXPECT_NE(session.error().message.find("step"), std::string::npos) << session.error().message;
}

}  // namespace
}  // namespace cinch::testing
