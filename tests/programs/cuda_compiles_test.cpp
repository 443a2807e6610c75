// NVRTC compiles the CUDA text of whole programs without a word; with CINCH_LONG=1 for other
// architectures too, from the oldest to the newest.
#include <gtest/gtest.h>

#include "codegen/emit/cuda.h"
#include "codegen/jit/nvrtc.h"
#include "tests/environment.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/matrix.h"

namespace cinch::testing {
namespace {

class NvrtcCheck : public ::testing::Test {
 public:
  explicit NvrtcCheck(ProgramFile program) : program_(std::move(program)) {}

  void TestBody() override {
    if (!codegen::nvrtc_report().is_found) GTEST_SKIP() << describe(codegen::nvrtc_report());
    const auto compiled = compile(program_);
    ASSERT_TRUE(compiled) << compiled.error();
    std::vector<std::string> archs = {"sm_90"};
    if (is_long_run()) archs = {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"};
    for (const std::string& arch : archs) {
      const auto source = codegen::emit_cuda(compiled->kernels, {.arch = arch});
      const auto binary = codegen::compile_cuda(source);
      ASSERT_TRUE(binary) << arch << ": " << binary.error().message;
      EXPECT_EQ(binary->log, "") << arch;
      EXPECT_GT(binary->bytes.size(), 1000u);
    }
  }

 private:
  ProgramFile program_;
};

void register_program(const ProgramFile& program) {
  ::testing::RegisterTest("CudaCompiles", program.name.c_str(), nullptr, nullptr, __FILE__,
                          __LINE__, [=]() -> NvrtcCheck* { return new NvrtcCheck(program); });
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  using namespace cinch::testing;
  ::testing::InitGoogleTest(&argc, argv);
  for (const auto& program : programs_for_cuda(cinch::is_long_run())) register_program(program);
  return RUN_ALL_TESTS();
}
