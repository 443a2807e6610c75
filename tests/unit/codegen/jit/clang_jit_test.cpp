// The compiler behind its interface: shared objects, assembly, layout, broken source, threads;
// images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <thread>

#include "codegen/emit/cpu.h"
#include "codegen/emit/cpu/prelude.h"
#include "codegen/emit/cuda.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/jit/compile_program.h"
#include "codegen/jit/nvrtc.h"
#include "runtime/core/check.h"
#include "runtime/image/image_file.h"
#include "runtime/image/validate.h"
#include "runtime/module/cpu_module.h"
#include "tests/unit/codegen/kir/sample_programs.h"

namespace cinch::codegen {
namespace {

using testing::HasSubstr;
using testing::Not;

KernelSource doubler(const std::string& arch) {
  return {
      {TargetKind::Cpu, arch},
      "extern \"C\" __attribute__((visibility(\"default\"))) int twice(int x) { return 2 * x; }\n"
      "int hidden(int x) { return x; }\n",
      {"twice"}};
}

using IntFunction = int (*)(int);
IntFunction find_twice(const rt::CpuModule& module) {
  return std::bit_cast<IntFunction>(module.find("twice"));
}

TEST(ClangJit, MakesSharedObjectsThatExportOnlyKernels) {
  const auto bytes = compile_cpu(doubler("native"));
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto module = rt::CpuModule::load(*bytes);
  ASSERT_TRUE(module) << module.error().message;
  const auto twice = find_twice(*module);
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice(21), 42);
  EXPECT_FALSE(module->find("_Z6hiddeni"));
  EXPECT_THAT(std::string(bytes->begin(), bytes->end()), Not(HasSubstr("libc.so")));
}

TEST(ClangJit, ReportsTheStagesTimes) {
  CompileTimes times;
  ASSERT_TRUE(compile_cpu(doubler("x86-64"), {.times = &times}));
  EXPECT_GT(times.front_end_ms, 0);
  EXPECT_GT(times.machine_code_ms, 0);
  EXPECT_GT(times.link_ms, 0);
  EXPECT_LT(times.total_ms(), 60000);
}

TEST(ClangJit, AttachesBrokenSourceToTheInternalError) {
  KernelSource source = doubler("x86-64");
  source.text += "int broken( {\n";
  try {
    (void)compile_cpu(source);
    FAIL() << "broken source compiled";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.kind(), InternalErrorKind::Bug);
    EXPECT_THAT(error.message(), HasSubstr("kernels.cpp:3"));
    EXPECT_EQ(error.program(), source.text);
  }
}

TEST(ClangJit, RefusesUnknownArchitectures) {
  EXPECT_THROW((void)compile_cpu(doubler("z80")), InternalError);
}

TEST(ClangJit, ShowsAssemblyOfTheLevel) {
  const kir::KernelProgram program = kir::sample_copy(kF32, 32);
  const auto v4 = compile_cpu_to_assembly(emit_cpu(program, {"x86-64-v4", false}));
  ASSERT_TRUE(v4);
  EXPECT_THAT(*v4, HasSubstr("zmm"));
  EXPECT_THAT(*v4, HasSubstr(program.kernels[0].info.symbol + ":"));
  const auto v3 = compile_cpu_to_assembly(emit_cpu(program, {"x86-64-v3", false}));
  EXPECT_THAT(*v3, HasSubstr("ymm"));
  EXPECT_THAT(*v3, Not(HasSubstr("zmm")));
  const auto v1 = compile_cpu_to_assembly(emit_cpu(program, {"x86-64", false}));
  EXPECT_THAT(*v1, Not(HasSubstr("ymm")));
}

TEST(ClangJit, LaysOutSourceForPeople) {
  const auto text = format_source("int f( int x ){if(x){return   1;}return 2;}");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "int f(int x) {\n  if (x) {\n    return 1;\n  }\n  return 2;\n}");
  EXPECT_EQ(*format_source(""), "");
}

TEST(ClangJit, OpensEmittedSourceWithTheKernelIr) {
  const KernelSource source = emit_cpu(kir::sample_compact());
  EXPECT_EQ(source.text.rfind("// ", 0), 0u);
  EXPECT_THAT(source.text.substr(0, 4000), HasSubstr("look_back"));
  const auto shown = format_source(source.text);
  ASSERT_TRUE(shown);
  EXPECT_THAT(*shown, HasSubstr("extern \"C\""));
}

TEST(ClangJit, EmitsTheSameTextEveryTime) {
  const KernelSource a = emit_cpu(kir::sample_odds()), b = emit_cpu(kir::sample_odds());
  EXPECT_EQ(a.text, b.text);
}

TEST(ClangJit, InstrumentsKernelsWhereAsked) {
  const KernelSource source = emit_cpu(kir::sample_compact(), {"x86-64", false});
  for (bool sanitize : {false, true}) {
    const auto bytes = compile_cpu(source, {.sanitize_address = sanitize});
    ASSERT_TRUE(bytes);
    const std::string text(bytes->begin(), bytes->end());
    EXPECT_EQ(text.find("__asan_report_load4") != std::string::npos, sanitize);
  }
}

TEST(ClangJit, CompilesOnSeveralThreads) {
  std::vector<std::thread> threads;
  std::vector<int> results(4);
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      const auto bytes = compile_cpu(doubler("x86-64"));
      if (!bytes) return;
      const auto module = rt::CpuModule::load(*bytes);
      if (!module) return;
      results[t] = find_twice(*module)(static_cast<int>(t) + 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(results, testing::ElementsAre(2, 4, 6, 8));
}

TEST(CpuModule, RefusesWhatIsNotASharedObject) {
  const std::vector<std::uint8_t> garbage(1000, 7);
  const auto module = rt::CpuModule::load(garbage);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().kind, rt::ErrorKind::CorruptFile);
  EXPECT_FALSE(rt::CpuModule::load(std::vector<std::uint8_t>{}));
}

TEST(CompileProgram, MakesAnImageThatLoads) {
  const kir::KernelProgram program = kir::sample_reduce();
  auto image = make_image(program, {TargetKind::Cpu, "native"}, {.count_accesses = true});
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->target, "cpu:" + std::string(rt::host_cpu_arch()));
  EXPECT_TRUE(image->counts_accesses);
  EXPECT_EQ(image->kernels.size(), program.kernels.size());
  EXPECT_EQ(image->buffers.size(), program.buffers.size());
  const auto module = rt::CpuModule::load(*image);
  ASSERT_TRUE(module) << module.error().message;
  for (std::size_t k = 0; k < program.kernels.size(); ++k) EXPECT_TRUE(module->kernel(k));

  image->kernels[0].symbol = "nobody";
  const auto missing = rt::CpuModule::load(*image);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("nobody"));
  image->target = "cpu:x86-64-v9";
  EXPECT_EQ(rt::CpuModule::load(*image).error().kind, rt::ErrorKind::Unavailable);
  image->target = "cuda:sm_90";
  EXPECT_EQ(rt::CpuModule::load(*image).error().kind, rt::ErrorKind::Unavailable);
}

TEST(CompileProgram, FindsTheHelpersOfThisBuild) {
  EXPECT_EQ(can_link_helpers({.sanitize_address = false}), true);
  EXPECT_EQ(can_link_helpers({.sanitize_address = true}), false);
  EXPECT_EQ(can_link_helpers({.sanitize_address = false, .optimization_level = 0}), false);
}

// The object of kernels with the precompiled prelude is that of the whole text.
TEST(CompileProgram, PrecompilesThePreludeThatTheTextWouldHave) {
  for (const kir::KernelProgram& program : {kir::sample_odds(), kir::sample_compact()}) {
    for (const CpuArch& arch : kCpuArchs) {
      if (!arch.has_images) continue;
      CpuOptions options{arch.name};
      options.links_helpers = true;
      const KernelSource bare = emit_cpu(program, options);
      KernelSource whole = bare;
      whole.text = cpu_helpers_text(HelpersMode::Linked) + bare.text;
      whole.links_helpers = false;
      const auto a = compile_cpu_to_object(bare, {.sanitize_address = false});
      const auto b = compile_cpu_to_object(whole, {.sanitize_address = false});
      ASSERT_TRUE(a && b);
      EXPECT_EQ(*a, *b) << arch.name;
    }
  }
}

TEST(CompileProgram, LinksHelpersForEveryLevel) {
  const kir::KernelProgram program = kir::sample_reduce();
  for (const CpuArch& arch : kCpuArchs) {
    if (!arch.has_images) continue;
    CpuOptions options{arch.name};
    options.links_helpers = true;
    const KernelSource source = emit_cpu(program, options);
    const auto bytes = compile_cpu(source, {.sanitize_address = false});
    ASSERT_TRUE(bytes) << bytes.error().message;
    if (rt::host_supports(arch.name)) {
      EXPECT_TRUE(rt::CpuModule::load(*bytes)) << arch.name;
    }
  }
}

TEST(CompileProgram, SplitsKernelsIntoUnitsOfAboutTheSameLength) {
  const kir::KernelProgram program = kir::sample_odds();
  CpuOptions options{"x86-64"};
  EXPECT_EQ(emit_cpu_parts(program, options).size(), 1u);
  options.max_parts = 2;
  const std::vector<KernelSource> parts = emit_cpu_parts(program, options);
  ASSERT_EQ(parts.size(), 2u);
  std::set<std::string> symbols, expected;
  for (const kir::Kernel& kernel : program.kernels) expected.insert(kernel.info.symbol);
  for (const KernelSource& part : parts) {
    EXPECT_FALSE(part.symbols.empty());
    symbols.insert(part.symbols.begin(), part.symbols.end());
  }
  EXPECT_EQ(parts[0].symbols.size() + parts[1].symbols.size(), expected.size());
  EXPECT_EQ(symbols, expected);
  const auto bytes = compile_cpu(parts);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto module = rt::CpuModule::load(*bytes);
  ASSERT_TRUE(module);
  for (const std::string& symbol : expected) EXPECT_TRUE(module->find(symbol)) << symbol;
}

TEST(CompileProgram, RefusesTargetsWithoutImages) {
  const auto image = make_image(kir::sample_reduce(), {TargetKind::Cpu, "aarch64"});
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().kind, rt::ErrorKind::Unavailable);
}

TEST(CompileProgram, MakesCudaImagesThatComeBackFromTheirFile) {
  if (!nvrtc_report().is_found) GTEST_SKIP() << "no NVRTC on this machine";
  const kir::KernelProgram program = kir::sample_odds();
  const auto image = make_image(program, {TargetKind::Cuda, "sm_90"});
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->target, "cuda:sm_90");
  EXPECT_EQ(image->binary[0], 0x7f);  // ELF
  const std::string cubin(image->binary.begin(), image->binary.end());
  auto read = rt::read_image(rt::write_image(*image));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->binary, image->binary);
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    EXPECT_THAT(cubin, HasSubstr(image->kernels[k].symbol));
    EXPECT_EQ(read->kernels[k].cuda, cuda_launch(program, program.kernels[k]));
  }
  read->kernels[0].cuda.block_threads = 48;
  EXPECT_FALSE(rt::validate_image(*read));
  read->kernels[0].cuda = {.block_threads = 32, .groups_per_block = 1, .resident_blocks = 1};
  EXPECT_TRUE(rt::validate_image(*read));
  read->kernels[0].cuda.is_foldable = true;
  EXPECT_FALSE(rt::validate_image(*read));
  read->kernels[0].cuda.is_foldable = false;
  for (const std::uint32_t threads : {0u, 16u, 2048u}) {
    rt::ProgramImage other = *read;
    other.gpu_steps_threads = threads;
    EXPECT_FALSE(rt::validate_image(other)) << threads;
  }
  read->gpu_steps_shared_bytes = 50000;
  EXPECT_FALSE(rt::validate_image(*read));
  read->gpu_steps_shared_bytes = 48 * 1024;
  EXPECT_TRUE(rt::validate_image(*read));
  read->kernels[0].cuda.shared_bytes = 48 * 1024 + 1;
  EXPECT_FALSE(rt::validate_image(*read));
  const auto unknown = make_image(program, {TargetKind::Cuda, "sm_1"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, rt::ErrorKind::InvalidArgument);
}

}  // namespace
}  // namespace cinch::codegen
