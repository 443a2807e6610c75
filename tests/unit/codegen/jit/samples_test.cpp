// Every instruction of the kernel IR, in kir's sample programs, compiles for every CPU level, with
// and without counted accesses, and loads.
#include <gtest/gtest.h>

#include "codegen/emit/cpu.h"
#include "codegen/jit/clang_jit.h"
#include "runtime/core/check.h"
#include "runtime/module/cpu_module.h"
#include "tests/unit/codegen/kir/sample_programs.h"

namespace cinch::codegen {
namespace {

class SamplesOnArch : public testing::TestWithParam<const char*> {};

TEST_P(SamplesOnArch, CompileAndLoad) {
  for (const kir::KernelProgram& program : kir::all_samples()) {
    for (bool count : {false, true}) {
      if (count && GetParam() != std::string_view("x86-64-v3")) continue;
      const KernelSource source = emit_cpu(program, {GetParam(), count});
      try {
        const auto binary = compile_cpu(source);
        ASSERT_TRUE(binary) << binary.error().message;
        if (!rt::host_supports(GetParam())) continue;
        const auto module = rt::CpuModule::load(*binary);
        ASSERT_TRUE(module) << module.error().message;
        for (const std::string& symbol : source.symbols) EXPECT_TRUE(module->find(symbol));
      } catch (const InternalError& error) {
        FAIL() << error.message().substr(0, 4000);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Arches, SamplesOnArch, testing::Values("x86-64", "x86-64-v3", "x86-64-v4"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace cinch::codegen
