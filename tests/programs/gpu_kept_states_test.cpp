// A step of a session on a GPU is undone: the states are those before it, and repeating the step
// gives the same results.
#include "codegen/jit/compile_program.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gpu_session_fixture.h"
#include "tests/two_threads.h"

namespace cinch::testing {
namespace {

// Both encode and finish change the one state: it has two new values in a step.
constexpr const char* kTwice = R"(compressor twice {
  state s: [f32; n] = 0
  wire { value: [f32; n] }
  encode(g: [f32; n]) {
    s = s + g
    wire { value: s }
  }
  decode(w) { w.value }
  finish(sum) {
    s = s + sum
    sum
  }
}
)";

class GpuKeptStatesTest : public GpuSessionTest {
 protected:
  rt::GpuSession open_keeping(const ProgramFile& file, codegen::StateUpdate states) {
    const auto compiled = compile(file, states);
    EXPECT_TRUE(compiled) << compiled.error();
    const codegen::Target target{codegen::TargetKind::Cuda, codegen::kEmulatedArch};
    auto image = codegen::make_image(compiled->kernels, target);
    EXPECT_TRUE(image) << image.error().message;
    rt::GpuSessionOptions options;
    options.tensors = {{100, 1, 0, 0}, {0, 1, 1, 0}, {33, 1, 2, 0}};
    options.keeps_states = true;
    auto program = rt::GpuProgram::load(device, std::move(*image));
    EXPECT_TRUE(program) << program.error().message;
    auto session = rt::GpuSession::open(*program, options);
    EXPECT_TRUE(session) << session.error().message;
    return std::move(*session);
  }

  void prepare(rt::GpuSession& session) {
    for (std::size_t t = 0; t < 3; ++t) {
      gradients.push_back(t == 1 ? 0 : upload(gradient(t == 0 ? 100 : 33, t)));
      updates.push_back(t == 1 ? 0 : allocate(400));
      payloads.push_back(payload_for(session, t));
    }
  }
  // Everything that changes states.
  void step(rt::GpuSession& session, std::uint64_t number) {
    ASSERT_TRUE(session.encode(gradients, payloads, number, nullptr));
    if (session.info().has_finish) {
      ASSERT_TRUE(session.finish(gradients, updates, number, nullptr));
    }
    const auto outcomes = session.collect(nullptr);
    ASSERT_TRUE(outcomes);
    for (const auto& outcome : *outcomes) ASSERT_TRUE(outcome.status);
  }
  static std::vector<std::vector<std::uint8_t>> states_of(const rt::GpuSession& session) {
    std::vector<std::vector<std::uint8_t>> all;
    for (std::size_t t = 0; t < 3; ++t) all.push_back(*session.states_as_bytes(t, nullptr));
    return all;
  }

  std::vector<rt::GpuAddress> gradients, updates;
  std::vector<rt::GpuPayload> payloads;
};

TEST_F(GpuKeptStatesTest, are_those_before_the_step) {
  const ProgramFile files[] = {*read_program(std::string(CINCH_STDLIB_DIR) + "/sign/ef_sign.cinch"),
                               *make_program("twice", kTwice)};
  for (const auto& file : files) {
    for (const auto update : {codegen::StateUpdate::SecondBuffer, codegen::StateUpdate::InPlace}) {
      gradients.clear(), updates.clear(), payloads.clear();
      rt::GpuSession session = open_keeping(file, update);
      prepare(session);
      step(session, 0);
      const auto before = states_of(session);
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(session.keep_states(nullptr));
        step(session, 1);
        EXPECT_NE(states_of(session), before) << file.name;
        ASSERT_TRUE(session.take_back_states(nullptr));
        EXPECT_EQ(states_of(session), before) << file.name;
      }
    }
  }
}

TEST_F(GpuKeptStatesTest, need_memory_that_was_asked_for) {
  rt::GpuSession session = open("ef_sign", {10});
  EXPECT_FALSE(session.keep_states(nullptr));
  EXPECT_FALSE(session.take_back_states(nullptr));
}

TEST_F(GpuSessionTest, TakesOneCallAtATime) {
  rt::GpuSession session = open("ef_sign", {2000});
  const GpuAddress gradient_at = upload(gradient(2000)), output = allocate(8000);
  const GpuPayload payload = payload_for(session);
  const auto is_done = [](const auto& result) {
    if (result) return true;
    EXPECT_NE(result.error().message.find("in use by another thread"), std::string::npos)
        << result.error().message;
    return false;
  };
  call_from_two_threads(12, [&](int thread, int turn) {
    const auto step = static_cast<std::uint64_t>(turn);
    switch ((turn + thread) % 6) {
      case 0:
        return is_done(session.encode({&gradient_at, 1}, {&payload, 1}, step, nullptr));
      case 1:
        return is_done(session.collect(nullptr));
      case 2:
        return is_done(session.states_as_bytes(0, nullptr));
      case 3:
        return is_done(session.payload_bound(0));
      case 4:
        return is_done(session.header_for(0, step));
      default:
        return is_done(session.finish({&gradient_at, 1}, {&output, 1}, step, nullptr));
    }
  });
}

}  // namespace
}  // namespace cinch::testing
