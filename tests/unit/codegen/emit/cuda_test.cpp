// CUDA text of hand-written kernels: NVRTC takes all of it; the shapes and texts are what the
// kernels ask for.
#include "codegen/emit/cuda.h"
#include "codegen/passes/passes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "codegen/jit/nvrtc.h"
#include "runtime/core/check.h"
#include "tests/environment.h"
#include "tests/unit/codegen/kir/sample_programs.h"

namespace cinch::codegen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

#define SKIP_WITHOUT_NVRTC() \
  if (!nvrtc_report().is_found) GTEST_SKIP() << describe(nvrtc_report())

void compiles(const kir::KernelProgram& program, const char* arch) {
  const KernelSource source = emit_cuda(program, {.arch = arch});
  const auto binary = compile_cuda(source);
  ASSERT_TRUE(binary) << arch << "\n" << binary.error().message;
  EXPECT_EQ(binary->log, "") << program.info.name;
  EXPECT_GT(binary->bytes.size(), 1000u);
}

TEST(CudaText, every_instruction_compiles_for_every_architecture) {
  SKIP_WITHOUT_NVRTC();
  std::size_t number = 0;
  for (const kir::KernelProgram& program : kir::all_samples()) {
    // Every day one architecture a program, and for each third the oldest and the newest, too.
    const bool takes_all = is_long_run() || (!is_sample_run() && number++ % 3 == 0);
    for (const char* arch : {"sm_75", "sm_90", "sm_120"}) {
      if (takes_all || std::string_view(arch) == "sm_90") compiles(program, arch);
    }
  }
}

TEST(CudaText, every_stored_type_compiles) {
  SKIP_WITHOUT_NVRTC();
  for (DType dtype : {kBool, kF16, kBF16, kF32, kF64, kF8E4M3, kF8E5M2, kU8, kI16, kU32, kI64}) {
    compiles(kir::sample_copy(dtype, kir::whole_element_bits(dtype)), "sm_90");
  }
  for (int bits : {2, 3, 7, 9, 13, 17, 24, 31, 33, 40, 57, 61, 63}) {
    if (!is_long_run() && bits != 3 && bits != 13 && bits != 33 && bits != 63) continue;
    compiles(kir::sample_copy(*make_uint(bits), static_cast<std::uint8_t>(bits)), "sm_90");
    compiles(kir::sample_copy(*make_int(bits), static_cast<std::uint8_t>(bits)), "sm_90");
  }
  compiles(kir::sample_copy(kBool, 1), "sm_90");
}

TEST(CudaText, opens_with_the_kernel_ir_and_includes_nothing) {
  const KernelSource source = emit_cuda(kir::sample_compact());
  EXPECT_THAT(source.text, StartsWith("// name=\"sample_compact\""));
  EXPECT_THAT(source.text, Not(HasSubstr("#include")));
  EXPECT_THAT(source.symbols, ::testing::Contains("compact"));
  EXPECT_THAT(source.symbols, ::testing::Contains("cinch_steps"));
  EXPECT_EQ(source.target.arch, "sm_90");
}

TEST(CudaText, kernels_that_differ_in_places_alone_are_one_function) {
  const KernelSource source = emit_cuda(kir::sample_twins());
  EXPECT_THAT(source.served_by, ElementsAre(0, 0));
  EXPECT_THAT(source.symbols, ElementsAre("copy_all", "cinch_serve", "cinch_steps"));
  EXPECT_THAT(source.text, HasSubstr("const u32 at_b0 = step.kernel == 1u ? 1u : 0u;"));
  EXPECT_THAT(source.text, HasSubstr("case 0u: case 1u: return copy_all_step_8("));
  EXPECT_THAT(source.text, Not(HasSubstr("copy_half_body")));
  const kir::KernelProgram other = kir::sample_reduce();
  for (std::size_t k = 0; k < other.kernels.size(); ++k) {
    EXPECT_EQ(emit_cuda(other).served_by[k], k);
  }
}

TEST(CudaText, ordered_kernels_take_tickets) {
  const std::string text = emit_cuda(kir::sample_compact()).text;
  EXPECT_THAT(text, HasSubstr("take_ticket(reinterpret_cast<u64*>(b1) + 2u * launched_groups"));
  EXPECT_THAT(emit_cuda(kir::sample_reduce()).text, Not(HasSubstr("= take_ticket(")));
}

// Of a row's 16 bytes per lane each is moved at once, and the second row's are on their way before
// the first row's are looked at.
TEST(CudaText, whole_rows_are_vectors_four_at_a_time) {
  SKIP_WITHOUT_NVRTC();
  const auto ptx = compile_cuda(emit_cuda(kir::sample_copy(kF32, 32)), {.output = CudaOutput::Ptx});
  ASSERT_TRUE(ptx) << ptx.error().message;
  const std::string text(ptx->bytes.begin(), ptx->bytes.end());
  int most = 0, in_a_row = 0;
  for (std::size_t at = text.find(".global.v4"); at != std::string::npos;
       at = text.find(".global.v4", at + 1)) {
    in_a_row = text.compare(at - 2, 2, "ld") == 0 ? in_a_row + 1 : 0;
    most = std::max(most, in_a_row);
  }
  EXPECT_EQ(most, 4);
}

TEST(CudaLaunchShape, follows_the_groups) {
  const auto launch = [](const kir::KernelProgram& program, std::size_t kernel) {
    return cuda_launch(program, program.kernels[kernel]);
  };
  // Tiles: a warp each.
  EXPECT_EQ(launch(kir::sample_reduce(), 0).groups_per_block, 8u);
  EXPECT_EQ(launch(kir::sample_reduce(), 0).block_threads, 256u);
  EXPECT_TRUE(launch(kir::sample_reduce(), 1).is_single_block);
  // Rows of one tile a warp each, long rows a block each, rows of a few elements 16 to a warp.
  EXPECT_EQ(launch(kir::sample_rows(512, 4), 0).groups_per_block, 8u);
  EXPECT_EQ(launch(kir::sample_rows(100000, 4), 0).groups_per_block, 1u);
  EXPECT_EQ(launch(kir::sample_rows(5, 3), 0).groups_per_block, 128u);
  // Ordered additions: one warp, all groups in turn.
  EXPECT_EQ(launch(kir::sample_odds(), 2).block_threads, 32u);
  EXPECT_TRUE(launch(kir::sample_odds(), 2).is_single_block);
}

// Partials are folded in place, before the kernel: not where others look at them, where they are
// not made anew each time, or where the kernel itself makes what its reductions need.
TEST(CudaLaunchShape, says_which_partials_may_be_folded) {
  using kir::Instr;
  const auto is_foldable = [](kir::KernelProgram program) {
    mark_foldable(program);
    return cuda_launch(program, program.kernels[1]).is_foldable;
  };
  const kir::KernelProgram program = kir::sample_folds();
  EXPECT_TRUE(is_foldable(program));
  EXPECT_TRUE(is_foldable(kir::sample_reduce()));
  kir::KernelProgram marked = program;
  mark_foldable(marked);
  EXPECT_FALSE(cuda_launch(marked, marked.kernels[0]).is_foldable);

  const auto changed = [&](const std::function<void(kir::KernelProgram&)>& change) {
    kir::KernelProgram other = program;
    change(other);
    return is_foldable(other);
  };
  const auto steps = [](kir::KernelProgram& p) -> std::vector<rt::Step>& {
    return p.entries[static_cast<std::size_t>(rt::EntryKind::Encode)].steps;
  };
  EXPECT_FALSE(changed([&](auto& p) { steps(p).push_back(steps(p)[1]); })) << "twice";
  EXPECT_FALSE(changed([&](auto& p) {
    steps(p).push_back({.kind = rt::StepKind::Copy, .index = 0, .index2 = 1});
  })) << "copied";
  EXPECT_FALSE(changed([](auto& p) {
    p.kernels.push_back(p.kernels[1]);
    p.kernels.back().info.symbol = "other";
  })) << "read by another";
  EXPECT_FALSE(changed([](auto& p) { p.buffers[1].role = rt::BufferRole::Field; }));
  EXPECT_FALSE(changed([](auto& p) {
    p.buffers[1].dtype = kF16;
    p.buffers[1].storage_bits = 16;
  })) << "rounded";
  // The flag's comparison reads what the sum made.
  EXPECT_FALSE(changed([](auto& p) {
    std::vector<Instr>& instrs = p.kernels[1].sections[0].instrs;
    const auto sum = std::ranges::find(instrs, kir::InstrKind::finish_reduce, &Instr::kind);
    for (kir::Combiner& combiner : p.kernels[1].combiners) {
      for (Instr& instr : combiner.body) instr.operands[0] = sum->results[0];
    }
  })) << "a combiner that follows a result";
}

TEST(CudaLaunchShape, local_arrays_take_warps_from_a_block) {
  kir::KernelProgram program = kir::sample_scan();
  kir::Kernel& kernel = program.kernels[0];
  kernel.locals.push_back({kir::ComputeType::F64});
  EXPECT_EQ(cuda_launch(program, kernel).block_threads, 64u);
  for (int i = 0; i < 8; ++i) kernel.locals.push_back({kir::ComputeType::F64});
  EXPECT_THROW(cuda_launch(program, kernel), InternalError);
}

}  // namespace
}  // namespace cinch::codegen
