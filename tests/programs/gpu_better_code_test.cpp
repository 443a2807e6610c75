// Better code takes the place of quickly compiled code between two calls of a session on the
// emulated GPU. Captured calls keep the code with which they were captured.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string_view>
#include <thread>

#include "codegen/jit/compile_program.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gpu_session_fixture.h"

namespace cinch::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kMarkedElems = 3000;
constexpr milliseconds kLongWait{20000};
// What the two codes add. No formula of the image has these numbers.
constexpr int kFirst = 3, kBetter = 5;

// Code of the same program whose results tell the two apart: decode adds `added`.
rt::ProgramImage image_adding(int added) {
  const std::string text =
      "compressor marked {\n  wire { value: [f32; n] }\n"
      "  encode(g: [f32; n]) { wire { value: g } }\n"
      "  decode(w) { w.value + " +
      std::to_string(added) + " }\n}\n";
  const auto compiled = compile(*make_program("marked", text), codegen::StateUpdate::SecondBuffer);
  EXPECT_TRUE(compiled) << compiled.error();
  const codegen::Target target{codegen::TargetKind::Cuda, codegen::kEmulatedArch};
  return codegen::make_image(compiled->kernels, target).value();
}

class GpuBetterCodeTest : public GpuSessionTest {
 protected:
  void SetUp() override {
    GpuSessionTest::SetUp();
    from = upload(gradient(kMarkedElems));
    to = allocate(kMarkedElems * sizeof(float));
  }

  rt::FindBetterCode search() {
    return [this]() -> std::optional<rt::ProgramImage> {
      ++num_looks;
      if (!may_find) return std::nullopt;
      return better;
    };
  }
  rt::GpuSession open_marked(const std::shared_ptr<const rt::GpuProgram>& program) {
    rt::GpuSessionOptions options;
    options.tensors = {{kMarkedElems, 1, 0, 0}};
    return rt::GpuSession::open(program, options).value();
  }
  rt::GpuSession open_searching() {
    return open_marked(rt::GpuProgram::load(device, image_adding(kFirst), search()).value());
  }
  void encode(rt::GpuSession& session) {
    if (payload.address == 0) payload = payload_for(session);
    ASSERT_TRUE(session.encode({&from, 1}, {&payload, 1}, 0, nullptr));
    ASSERT_TRUE(collect(session).status);
  }
  // What the call adds to the gradient.
  float decoded(rt::GpuSession& session) {
    EXPECT_TRUE(session.decode({&payload, 1}, {&to, 1}, 0, nullptr));
    return added(session);
  }
  float added(rt::GpuSession& session) {
    EXPECT_TRUE(collect(session).status);
    return std::round(download<float>(to, 1)[0] - gradient(kMarkedElems)[0]);
  }
  template <typename Condition>
  static bool wait_for(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + kLongWait;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }

  std::atomic<bool> may_find{false};
  std::atomic<int> num_looks{0};
  rt::ProgramImage better = image_adding(kBetter);
  GpuAddress from = 0, to = 0;
  GpuPayload payload{};
};

TEST_F(GpuBetterCodeTest, takes_the_place_of_the_first_in_open_sessions) {
  const auto program = rt::GpuProgram::load(device, image_adding(kFirst), search()).value();
  rt::GpuSession first = open_marked(program), second = open_marked(program);
  encode(first);
  ASSERT_TRUE(wait_for([&] {
    EXPECT_EQ(decoded(first), kFirst);
    return num_looks > 0;
  }));
  may_find = true;
  ASSERT_TRUE(wait_for([&] { return decoded(first) == kBetter; }));
  EXPECT_EQ(decoded(second), kBetter);
  const int looked = num_looks;
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(decoded(first), kBetter);
  EXPECT_EQ(num_looks, looked) << "it was found already";
}

TEST_F(GpuBetterCodeTest, captured_calls_keep_their_code) {
  rt::GpuSession session = open_searching();
  encode(session);
  const rt::GpuDriver& driver = device->driver();
  rt::GpuStream stream = nullptr;
  ASSERT_EQ(driver.stream_create(&stream, rt::kGpuStreamNonBlocking), rt::kGpuSuccess);
  const auto capture = [&] {
    rt::GpuGraph graph = nullptr;
    rt::GpuGraphExec exec = nullptr;
    EXPECT_EQ(driver.capture_begin(stream, rt::kGpuCaptureGlobal), rt::kGpuSuccess);
    EXPECT_TRUE(session.decode({&payload, 1}, {&to, 1}, 0, stream));
    EXPECT_EQ(driver.capture_end(stream, &graph), rt::kGpuSuccess);
    EXPECT_EQ(driver.graph_instantiate(&exec, graph, 0), rt::kGpuSuccess);
    EXPECT_EQ(driver.graph_destroy(graph), rt::kGpuSuccess);
    return exec;
  };
  const auto replayed = [&](rt::GpuGraphExec exec) {
    EXPECT_EQ(driver.graph_launch(exec, stream), rt::kGpuSuccess);
    EXPECT_EQ(driver.stream_synchronize(stream), rt::kGpuSuccess);
    return added(session);
  };
  EXPECT_EQ(decoded(session), kFirst);
  may_find = true;
  std::this_thread::sleep_for(milliseconds(150));
  const rt::GpuGraphExec before = capture();  // looks for nothing: it is the code of the last call
  EXPECT_EQ(replayed(before), kFirst);
  ASSERT_TRUE(wait_for([&] { return decoded(session) == kBetter; }));
  EXPECT_EQ(replayed(before), kFirst);
  const rt::GpuGraphExec after = capture();
  EXPECT_EQ(replayed(after), kBetter);
  for (const rt::GpuGraphExec exec : {before, after})
    EXPECT_EQ(driver.graph_exec_destroy(exec), rt::kGpuSuccess);
  EXPECT_EQ(driver.stream_destroy(stream), rt::kGpuSuccess);
}

TEST_F(GpuBetterCodeTest, comes_beside_a_capture_of_somebody_else) {
  rt::GpuSession session = open_searching();
  encode(session);
  may_find = true;
  const rt::GpuDriver& driver = device->driver();
  rt::GpuStream captured = nullptr, own = nullptr;
  ASSERT_EQ(driver.stream_create(&captured, rt::kGpuStreamNonBlocking), rt::kGpuSuccess);
  ASSERT_EQ(driver.stream_create(&own, rt::kGpuStreamNonBlocking), rt::kGpuSuccess);
  EXPECT_EQ(decoded(session), kFirst);
  std::this_thread::sleep_for(milliseconds(150));
  ASSERT_EQ(driver.capture_begin(captured, rt::kGpuCaptureGlobal), rt::kGpuSuccess);
  EXPECT_TRUE(session.decode({&payload, 1}, {&to, 1}, 0, own));
  EXPECT_EQ(num_looks, 1);
  rt::GpuGraph graph = nullptr;
  EXPECT_EQ(driver.capture_end(captured, &graph), rt::kGpuSuccess);
  EXPECT_EQ(driver.graph_destroy(graph), rt::kGpuSuccess);
  EXPECT_EQ(driver.stream_synchronize(own), rt::kGpuSuccess);
  EXPECT_EQ(added(session), kBetter);
  for (const rt::GpuStream stream : {captured, own})
    EXPECT_EQ(driver.stream_destroy(stream), rt::kGpuSuccess);
}

TEST_F(GpuBetterCodeTest, that_cannot_serve_is_not_used) {
  rt::ProgramImage ptx = image_adding(kBetter), other = image_adding(kBetter),
                   incomplete = image_adding(kBetter);
  ptx.binary = {'.', 'v', 'e', 'r', 0};
  other.fingerprint[0] ^= 1;
  // A kernel is missing.
  const std::string_view symbol = rt::kGpuServeSymbol;
  const auto at = std::ranges::search(incomplete.binary, symbol);
  ASSERT_FALSE(at.empty());
  for (auto left = at; !left.empty(); left = std::ranges::search(incomplete.binary, symbol))
    left.front() = 'x';
  may_find = true;
  for (const rt::ProgramImage& image : {ptx, other, incomplete}) {
    better = image;
    num_looks = 0;
    rt::GpuSession session = open_searching();
    encode(session);
    ASSERT_TRUE(wait_for([&] {
      EXPECT_EQ(decoded(session), kFirst);
      return num_looks > 0;
    }));
    EXPECT_EQ(decoded(session), kFirst);
  }
}

}  // namespace
}  // namespace cinch::testing
