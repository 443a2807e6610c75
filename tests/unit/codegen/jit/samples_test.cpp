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

// Modules can be told apart while both are loaded.
TEST(Modules, LiveSideBySide) {
  std::vector<rt::CpuModule> modules;
  std::vector<std::string> symbols;
  for (const kir::KernelProgram& program : {kir::sample_reduce(), kir::sample_compact()}) {
    const KernelSource source = emit_cpu(program, {"x86-64"});
    const auto binary = compile_cpu(source);
    ASSERT_TRUE(binary) << binary.error().message;
    auto module = rt::CpuModule::load(*binary);
    ASSERT_TRUE(module) << module.error().message;
    modules.push_back(std::move(*module));
    symbols.push_back(source.symbols[0]);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(modules[i].find(symbols[i]));
    EXPECT_FALSE(modules[i].find(symbols[1 - i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Arches, SamplesOnArch,
                         testing::Values("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4",
                                         "aarch64"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace cinch::codegen
