// CUDA text of whole programs, run on the emulated GPU, entry after entry as a session runs
// them: after every kernel every buffer, and so payload and decoded tensor, has the bits of the CPU
// kernels; payload and tensor are then compared with those of a session. With CINCH_LONG=1 more
// programs, sizes and data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/payload/payload.h"
#include "runtime/session/parameters.h"
#include "runtime/session/session.h"
#include "tests/environment.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/matrix.h"
#include "tests/unit/codegen/emit/program_bits.h"

namespace cinch::testing {
namespace {

using codegen::BitsCase;
using codegen::BitsRun;
using codegen::kBitsDraw;
using rt::EntryKind;

constexpr std::uint64_t kStep = 9;
constexpr std::uint32_t kCalls = 2;  // of the same step: data and states differ

std::vector<std::uint8_t> bytes_of(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// One tensor, by CUDA text and by a session.
class Comparison {
 public:
  Comparison(const kir::KernelProgram& kernels, const codegen::BothTargets& targets,
             const std::shared_ptr<const rt::LoadedProgram>& loaded, const Case& one_case,
             std::uint32_t world)
      : kernels_(kernels), parameters_(kernels.info), case_(one_case) {
    at_.rows = one_case.rows;
    at_.cols = one_case.cols;
    at_.n = one_case.rows * one_case.cols;
    at_.params = parameters_.kernel_words();
    at_.host_params = parameters_.host_values();
    at_.input = bytes_of(gradient(0));
    at_.num_blocks = at_.n < 3000 ? 1 : 3;
    at_.step = kStep;
    at_.world = world;
    at_.is_session = true;
    run_ = std::make_unique<BitsRun>(kernels, targets, at_);
    open(loaded);
  }

  // Empty, or what differs.
  std::string run() {
    if (!session_) return "no session";
    run_->zero_states();
    std::string error = run_->run(EntryKind::Init);
    if (error.empty()) run_->commit_states();
    for (std::uint32_t i = 0; i < kCalls && error.empty(); ++i) error = run_step(gradient(i));
    return error;
  }

 private:
  void open(const std::shared_ptr<const rt::LoadedProgram>& loaded) {
    rt::SessionOptions options;
    options.rows = at_.rows;
    options.cols = at_.cols;
    options.threads = 1;
    options.world = static_cast<std::uint32_t>(at_.world);
    options.seed = kBitsDraw[0] | std::uint64_t{kBitsDraw[1]} << 32;
    options.tensor = kBitsDraw[4];
    options.piece = kBitsDraw[5];
    options.worker = kBitsDraw[6];
    auto session = rt::Session::open(loaded, options);
    EXPECT_TRUE(session) << (session ? "" : session.error().message);
    if (session) session_ = std::make_unique<rt::Session>(std::move(*session));
  }

  std::vector<float> gradient(std::uint32_t i) const {
    return make_gradient(case_.data, case_.rows * case_.cols, 11 + i);
  }
  bool has(EntryKind kind) const {
    return kernels_.entries[static_cast<std::size_t>(kind)].present;
  }

  std::string run_step(const std::vector<float>& values) {
    run_->set_input(bytes_of(values));
    std::string error = run_->run(EntryKind::Encode);
    const auto payload = session_->encode(values, kStep);
    // A check that fails ends the call of a session; status words say so on both targets.
    if (!payload) return payload.error().kind == rt::ErrorKind::CheckFailed ? error : "encode";
    const std::vector<std::uint8_t> bytes(payload->begin(), payload->end());
    if (error.empty()) error = compare_payload(bytes);
    if (error.empty()) run_->commit_states();
    if (error.empty()) error = run_->run(EntryKind::Decode);
    std::vector<float> out(values.size());
    if (!session_->decode(bytes, out, kStep)) return "decode of the session failed";
    if (error.empty()) error = compare_output("decode", out);
    if (!error.empty() || !has(EntryKind::DecodeAdd)) return error;
    error = run_->run(EntryKind::DecodeAdd);
    if (!session_->decode_add(bytes, out, kStep)) return "decode_add of the session failed";
    return error.empty() ? compare_output("decode_add", out) : error;
  }

  std::string compare_output(const char* what, const std::vector<float>& expected) const {
    const auto found = run_->buffer(rt::BufferRole::Output, 0);
    const auto bytes = bytes_of(expected);
    const bool same = std::equal(bytes.begin(), bytes.end(), found.begin(), found.end());
    return same ? std::string() : fmt::format("{}: the session's tensor differs", what);
  }

  std::string compare_payload(std::span<const std::uint8_t> payload) const {
    HostEnv env{.n = at_.n, .rows = at_.rows, .cols = at_.cols};
    env.world = at_.world;
    env.worker = kBitsDraw[6];
    env.step = at_.step;
    env.params = at_.host_params;
    std::vector<std::uint32_t> counts;
    for (std::uint32_t i = 0; i < kernels_.info.wire.counts.size(); ++i) {
      std::memcpy(&counts.emplace_back(), run_->buffer(rt::BufferRole::Count, i).data(), 4);
    }
    const auto layout = rt::payload_layout(kernels_.info, env, counts);
    if (!layout) return "layout: " + layout.error().message;
    if (static_cast<std::size_t>(layout->size_bytes) != payload.size()) {
      return fmt::format("payload: {} bytes by CUDA text, {} by the session", layout->size_bytes,
                         payload.size());
    }
    for (std::uint32_t i = 0; i < layout->fields.size(); ++i) {
      const auto size_bytes = static_cast<std::size_t>(layout->fields[i].size_bytes);
      const auto expected =
          payload.subspan(static_cast<std::size_t>(layout->fields[i].offset), size_bytes);
      const auto found = run_->buffer(rt::BufferRole::Field, i).first(size_bytes);
      if (!std::equal(expected.begin(), expected.end(), found.begin())) {
        return "payload: the session's field differs: " + kernels_.info.wire.fields[i].name;
      }
    }
    return {};
  }

  const kir::KernelProgram& kernels_;
  rt::ParameterValues parameters_;
  Case case_;
  BitsCase at_;
  std::unique_ptr<BitsRun> run_;
  std::unique_ptr<rt::Session> session_;
};

std::vector<Case> cuda_cases(const ProgramFile& program, bool is_matrix) {
  if (is_long_run()) {
    std::vector<Case> cases = cases_for(program, is_matrix, false);
    std::erase_if(cases, [](const Case& c) {
      return c.rows == 0 || c.data == DataKind::NaN || c.data == DataKind::Infinity;
    });
    return cases;
  }
  if (is_sample_run()) return {{.rows = 33}, {.rows = 2500, .data = DataKind::HeavyTailed}};
  std::vector<Case> cases;
  for (std::int64_t n : {1, 33, 1025, 5000}) cases.push_back({.rows = n});
  cases.push_back({.rows = 5000, .data = DataKind::HeavyTailed});
  cases.push_back({.rows = 1025, .data = DataKind::Zeros});
  return cases;
}

class CudaTextCheck : public ::testing::Test {
 public:
  explicit CudaTextCheck(ProgramFile program) : program_(std::move(program)) {}

  void TestBody() override {
    const auto compiled = compile(program_);
    ASSERT_TRUE(compiled) << compiled.error();
    const auto targets = codegen::BothTargets::compile(compiled->kernels);
    ASSERT_TRUE(targets) << targets.error().message.substr(0, 3000);
    const auto loaded = load_for(compiled->kernels, architectures().present.back());
    ASSERT_TRUE(loaded) << loaded.error();
    const std::uint32_t world = std::max(program_.world, kBitsDraw[6] + 1);
    for (const Case& c : cuda_cases(program_, compiled->oracle.info.is_matrix)) {
      EXPECT_EQ(Comparison(compiled->kernels, *targets, *loaded, c, world).run(), "")
          << fmt::format("{}x{} {}", c.rows, c.cols, data_kind_name(c.data));
    }
  }

 private:
  ProgramFile program_;
};

void register_program(const ProgramFile& program) {
  ::testing::RegisterTest("CudaText", program.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> CudaTextCheck* { return new CudaTextCheck(program); });
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  using namespace cinch::testing;
  ::testing::InitGoogleTest(&argc, argv);
  for (const auto& program : programs_for_cuda(cinch::is_long_run())) register_program(program);
  return RUN_ALL_TESTS();
}
