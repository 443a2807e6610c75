// Programs with a `sync` body, of the standard library and of this folder: interpreter, CPU
// sessions with several numbers of threads, and the emulated GPU agree bit for bit, for several
// numbers of ranks, several steps and a step in which one rank's gradient is not finite.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/emulator/driver.h"
#include "codegen/jit/compile_program.h"
#include "tests/environment.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/matrix.h"
#include "tests/programs/harness/rank_runs.h"

namespace cinch::testing {
namespace {

class ProtocolCheck : public ::testing::Test {
 public:
  explicit ProtocolCheck(ProgramFile program) : program_(std::move(program)) {}

  void TestBody() override {
    const auto compiled = compile(program_);
    ASSERT_TRUE(compiled) << compiled.error();
    const auto image =
        codegen::make_image(compiled->kernels, {codegen::TargetKind::Cuda, codegen::kEmulatedArch});
    ASSERT_TRUE(image) << image.error().message;
    const auto loaded = load_for_all(compiled->kernels, levels_of(program_.name));
    ASSERT_TRUE(loaded) << loaded.error();
    by_arch_ = *loaded;
    emulator::GpuOptions gpu;
    gpu.schedule_seed = std::hash<std::string>()(program_.name);
    const auto device = rt::GpuDevice::open(emulator::start_driver(gpu));
    ASSERT_TRUE(device) << device.error().message;
    const auto on_gpu = rt::GpuProgram::load(*device, *image);
    ASSERT_TRUE(on_gpu) << on_gpu.error().message;
    const auto cases = cases_of(compiled->oracle.info.is_matrix);
    for (std::size_t i = 0; i < cases.size() && !HasFailure(); ++i) {
      check(compiled->oracle, *on_gpu, cases[i], i);
    }
  }

 private:
  struct Ranks {
    std::int64_t rows, cols;
    std::uint32_t world;
    DataKind data;
  };

  std::vector<Ranks> cases_of(bool is_matrix) const {
    std::vector<Ranks> all;
    const std::uint32_t worlds[] = {1, 2, 3, 4, 5, 8};
    std::size_t next = 0, number = 0;
    for (const Case& one : cases_for(program_, is_matrix, is_long_run())) {
      if (one.rows * one.cols == 0) continue;
      // The interpreter's ranks take seconds: every second shape, all kinds of data.
      if (!is_long_run() && one.data == DataKind::Normal && number++ % 2 == 1) continue;
      all.push_back({one.rows, one.cols, worlds[next++ % std::size(worlds)], one.data});
    }
    return all;
  }

  static RankCase make_case(const Ranks& ranks, std::size_t number) {
    RankCase made;
    made.options.rows = ranks.rows;
    made.options.cols = ranks.cols;
    made.options.world = ranks.world;
    // All ranks on one machine, or machines of half of them or of one.
    const std::uint32_t half = ranks.world % 2 == 0 ? ranks.world / 2 : 1;
    made.options.machine_ranks = number % 3 == 0 ? 0 : half;
    made.options.seed = 0x123456789abcdefull;
    made.options.tensor = 3;
    made.options.poison_memory = true;
    made.options.threads = 1 + static_cast<std::uint32_t>(number % 3);
    made.options.groups_per_task = number % 2;
    const bool is_bad = ranks.data == DataKind::NaN || ranks.data == DataKind::Infinity;
    for (std::uint64_t step = 0; step < 3; ++step) {
      auto& of_step = made.gradients.emplace_back();
      for (std::uint32_t rank = 0; rank < ranks.world; ++rank) {
        // Where it is bad, one rank is, in the middle: states of all must survive it.
        const bool is_normal = is_bad && (step != 1 || rank != ranks.world / 2);
        of_step.push_back(make_gradient(is_normal ? DataKind::Normal : ranks.data,
                                        ranks.rows * ranks.cols, 31 * step + rank + 5));
      }
    }
    return made;
  }

  void check(const ir::Program& oracle, const std::shared_ptr<const rt::GpuProgram>& on_gpu,
             const Ranks& ranks, std::size_t number) const {
    SCOPED_TRACE(fmt::format("{}x{}, {} ranks, {} data", ranks.rows, ranks.cols, ranks.world,
                             data_kind_name(ranks.data)));
    const RankCase one_case = make_case(ranks, number);
    const RankResults expected = interpret_ranks(oracle, one_case);
    EXPECT_EQ(find_disagreement(expected), "");
    const auto& loaded = by_arch_[number % by_arch_.size()];
    EXPECT_EQ(compare(expected, run_ranks_on_cpu(loaded, one_case)), "");
    // Emulated devices take their time, and ranks wait for each other: the smaller ones every day.
    constexpr std::int64_t kMostOfADay = 10000;
    if (is_long_run() || ranks.rows * ranks.cols * ranks.world <= kMostOfADay) {
      EXPECT_EQ(compare(expected, run_ranks_on_gpu(on_gpu, one_case)), "");
    }
  }

  ProgramFile program_;
  std::vector<std::shared_ptr<const rt::LoadedProgram>> by_arch_;
};

void register_folder(const std::filesystem::path& folder) {
  for (const ProgramFile& program : protocols_of(folder)) {
    ::testing::RegisterTest("Protocol", program.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [=]() -> ProtocolCheck* { return new ProtocolCheck(program); });
  }
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  cinch::testing::register_folder(CINCH_STDLIB_DIR);
  cinch::testing::register_folder(CINCH_PROGRAMS_DIR);
  return RUN_ALL_TESTS();
}
