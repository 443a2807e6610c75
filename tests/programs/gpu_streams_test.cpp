// Sessions on the emulated GPU whose calls come on several streams, and that close while other
// streams are at work or capture.
#include <gtest/gtest.h>

#include "tests/programs/harness/gpu_session_fixture.h"

namespace cinch::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::int64_t kElems = 3000;

class GpuStreamsTest : public GpuSessionTest {
 protected:
  const rt::GpuDriver& driver() { return device->driver(); }
  rt::GpuStream make_stream() {
    rt::GpuStream stream = nullptr;
    EXPECT_EQ(driver().stream_create(&stream, rt::kGpuStreamNonBlocking), rt::kGpuSuccess);
    return stream;
  }
  std::optional<rt::GpuSession> open_on(rt::GpuStream stream, const char* name) {
    rt::GpuSessionOptions options;
    options.tensors = {{kElems, 1, 0, 0}};
    options.seed = 11;
    options.keeps_states = true;
    auto session = rt::GpuSession::open(load(name), options, stream);
    EXPECT_TRUE(session);
    return std::move(*session);
  }
  Bytes payload_after(rt::GpuSession& session, const GpuPayload& payload, rt::GpuStream stream) {
    const auto outcomes = session.collect(stream);
    EXPECT_TRUE(outcomes) << outcomes.error().message;
    if (!outcomes) return {};
    return download<std::uint8_t>(payload.address,
                                  static_cast<std::size_t>(outcomes->at(0).payload_bytes));
  }
};

TEST_F(GpuStreamsTest, states_are_there_for_the_first_call_on_any_stream) {
  for (const char* name : {"started", "dgc", "ef_sign"}) {
    auto other = open_on(nullptr, name);
    const rt::GpuStream stream = make_stream();
    auto cpu = open_on_cpu(name, kElems);
    const GpuAddress from = upload(gradient(kElems));
    const GpuPayload to = payload_for(*other);
    // Comes last: copies of the fixture, and the end of a session, run the waiting work of the
    // default stream.
    auto session = open_on(nullptr, name);
    ASSERT_TRUE(session->encode({&from, 1}, {&to, 1}, 0, stream));
    EXPECT_EQ(payload_after(*session, to, stream), encode_on_cpu(cpu, gradient(kElems), 0)) << name;
  }
}

TEST_F(GpuStreamsTest, calls_on_several_streams_run_in_their_order) {
  auto session = open_on(make_stream(), "ef_sign");
  auto cpu = open_on_cpu("ef_sign", kElems);
  const std::vector<rt::GpuStream> streams = {make_stream(), nullptr, make_stream(), make_stream()};
  std::vector<GpuAddress> from;
  for (std::uint64_t step = 0; step < 6; ++step) from.push_back(upload(gradient(kElems, step)));
  const GpuPayload to = payload_for(*session);
  Bytes expected;
  const auto encode = [&](std::uint64_t step, rt::GpuStream stream) {
    ASSERT_TRUE(session->encode({&from[step], 1}, {&to, 1}, step, stream));
    expected = encode_on_cpu(cpu, gradient(kElems, step), step);
  };
  for (std::uint64_t step = 0; step < 5; ++step) encode(step, streams[step % 4]);
  // Undone and repeated.
  ASSERT_TRUE(session->keep_states(streams[2]));
  ASSERT_TRUE(session->encode({from.data(), 1}, {&to, 1}, 5, streams[0]));
  ASSERT_TRUE(session->take_back_states(streams[3]));
  encode(5, streams[2]);
  EXPECT_EQ(payload_after(*session, to, streams[3]), expected);
  EXPECT_EQ(*session->states_as_bytes(0, streams[0]), cpu.states_as_bytes());
}

TEST_F(GpuStreamsTest, a_session_closes_beside_a_capture_when_its_own_work_is_done) {
  auto session = open_on(nullptr, "dgc");
  auto cpu = open_on_cpu("dgc", kElems);
  const rt::GpuStream stream = make_stream(), captured = make_stream();
  const GpuAddress from = upload(gradient(kElems));
  const GpuPayload to = payload_for(*session);
  const std::size_t before = emulator::driver_gpu().allocated_bytes();
  ASSERT_EQ(driver().capture_begin(captured, rt::kGpuCaptureGlobal), rt::kGpuSuccess);
  ASSERT_TRUE(session->encode({&from, 1}, {&to, 1}, 0, stream));
  session.reset();
  EXPECT_EQ(driver().stream_synchronize(nullptr), rt::kGpuSuccess);
  EXPECT_EQ(driver().stream_synchronize(stream), rt::kGpuSuccess);
  rt::GpuGraph graph = nullptr;
  EXPECT_EQ(driver().capture_end(captured, &graph), rt::kGpuSuccess);
  driver().graph_destroy(graph);
  EXPECT_EQ(driver().context_synchronize(), rt::kGpuSuccess);
  EXPECT_LT(emulator::driver_gpu().allocated_bytes(), before);
  const Bytes expected = encode_on_cpu(cpu, gradient(kElems), 0);
  EXPECT_EQ(download<std::uint8_t>(to.address, expected.size()), expected);
}

// If a graph may still run, nobody knows on which stream.
TEST_F(GpuStreamsTest, what_a_graph_uses_is_kept_until_the_device_can_be_waited_for) {
  auto session = open_on(nullptr, "ef_sign");
  const rt::GpuStream stream = make_stream(), captured = make_stream();
  const GpuAddress from = upload(gradient(kElems));
  const GpuPayload to = payload_for(*session);
  ASSERT_TRUE(session->encode({&from, 1}, {&to, 1}, 0, stream));
  ASSERT_EQ(driver().capture_begin(stream, rt::kGpuCaptureGlobal), rt::kGpuSuccess);
  ASSERT_TRUE(session->encode({&from, 1}, {&to, 1}, 0, stream));
  rt::GpuGraph graph = nullptr;
  rt::GpuGraphExec exec = nullptr;
  ASSERT_EQ(driver().capture_end(stream, &graph), rt::kGpuSuccess);
  ASSERT_EQ(driver().graph_instantiate(&exec, graph, 0), rt::kGpuSuccess);
  ASSERT_EQ(driver().graph_launch(exec, stream), rt::kGpuSuccess);
  const std::size_t held = emulator::driver_gpu().allocated_bytes();
  ASSERT_EQ(driver().capture_begin(captured, rt::kGpuCaptureGlobal), rt::kGpuSuccess);
  session.reset();
  EXPECT_EQ(driver().stream_synchronize(nullptr), rt::kGpuSuccess);
  EXPECT_EQ(driver().stream_synchronize(stream), rt::kGpuSuccess);
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), held);
  rt::GpuGraph spoiled = nullptr;
  EXPECT_EQ(driver().capture_end(captured, &spoiled), rt::kGpuCaptureInvalidated);
  EXPECT_TRUE(device->freeing().retry());
  EXPECT_FALSE(device->freeing().retry());
  EXPECT_EQ(driver().context_synchronize(), rt::kGpuSuccess);
  EXPECT_LT(emulator::driver_gpu().allocated_bytes(), held);
  driver().graph_exec_destroy(exec);
  driver().graph_destroy(graph);
}

}  // namespace
}  // namespace cinch::testing
