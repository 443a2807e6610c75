// Every instruction of the kernel IR, in kir's sample programs, compiles for every CPU level, with
// and without counted accesses, and loads.
#include <gtest/gtest.h>

#include <cstdio>

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
      const KernelSource source = emit_cpu(program, {GetParam(), count});
      CompileTimes times;
      try {
        const auto binary = compile_cpu(source, {.times = &times});
        ASSERT_TRUE(binary) << binary.error().message;
        if (!rt::host_supports(GetParam())) continue;
        const auto module = rt::CpuModule::load(*binary);
        ASSERT_TRUE(module) << module.error().message;
        for (const std::string& symbol : source.symbols) EXPECT_TRUE(module->find(symbol));
      } catch (const InternalError& error) {
        FAIL() << error.message().substr(0, 4000);
      }
      if (!count) {
        std::printf("%-10s %-12s front end %.1f, optimiser %.1f, machine code %.1f, link %.1f ms\n",
                    GetParam(), program.info.name.c_str(), times.front_end_ms, times.optimizer_ms,
                    times.machine_code_ms, times.link_ms);
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
