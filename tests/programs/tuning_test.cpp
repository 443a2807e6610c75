// Tuning numbers never change a bit: programs under extreme values of each, on a CPU and on the
// emulated GPU, against a CPU session on one thread with the defaults.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/emulator/driver.h"
#include "codegen/jit/compile_program.h"
#include "runtime/tuning/tuning.h"
#include "tests/environment.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gpu_list.h"
#include "tests/programs/harness/gradients.h"

namespace cinch::testing {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 40, kManyBlocks = std::int64_t{1} << 20;

// Sums of floats in every order that there is, selections, scans, scatters, draws, sorted rows.
// Every third is of a sample.
constexpr const char* kPrograms[] = {"onebit",      "minmax",       "terngrad",  //
                                     "topk",        "dgc",          "graddrop",  //
                                     "scatters",    "running_sums", "qsgd",      //
                                     "row_sorting", "reductions",   "row_reductions"};

std::vector<const char*> programs_to_run() {
  if (!is_sample_run()) return {std::begin(kPrograms), std::end(kPrograms)};
  std::vector<const char*> sample;
  for (std::size_t i = 0; i < std::size(kPrograms); i += 3) sample.push_back(kPrograms[i]);
  return sample;
}

std::optional<ProgramFile> find_file(const std::string& name) {
  for (const char* folder : {CINCH_STDLIB_DIR, CINCH_PROGRAMS_DIR}) {
    for (const ProgramFile& program : compressors_of(folder)) {
      if (program.name == name) return program;
    }
  }
  return std::nullopt;
}

class TuningBits : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto program = find_file(GetParam());
    ASSERT_TRUE(program);
    auto compiled = compile(*program);
    ASSERT_TRUE(compiled) << compiled.error();
    kernels = std::move(compiled->kernels);
    const auto made = load_for(kernels, architectures().present.back());
    ASSERT_TRUE(made) << made.error();
    loaded = *made;
    for (const std::int64_t rows : sizes) {
      rt::SessionOptions& tensor = all_tensors.emplace_back();
      tensor.rows = rows;
      tensor.seed = 3;
      tensor.tensor = static_cast<std::uint32_t>(all_tensors.size());
      tensor.world = program->world;
      tensor.worker = program->world > 1 ? 1 : 0;
      tensor.threads = 1;
      tensor.tuning = rt::CpuTuning{};
    }
    expected = on_cpu(all_tensors);
  }

  std::vector<float> gradient(std::size_t tensor, std::uint64_t step) const {
    return make_gradient(DataKind::Normal, all_tensors[tensor].rows, 5 * step + tensor);
  }

  // Results by step and tensor.
  using Results = std::vector<std::vector<StepResult>>;
  static constexpr std::uint64_t kSteps = 2;

  Results on_cpu(const std::vector<rt::SessionOptions>& tensors) const {
    Results results(kSteps);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      auto session = rt::Session::open(loaded, tensors[t]);
      EXPECT_TRUE(session) << (session ? "" : session.error().message);
      for (std::uint64_t step = 0; step < kSteps && session; ++step) {
        results[step].push_back(run_step(*session, gradient(t, step), step));
      }
    }
    return results;
  }

  // Only smaller tensors: emulated threads are slow.
  Results on_gpu(const rt::GpuTuning& tuning) const {
    Results results;
    const std::vector<rt::SessionOptions> tensors(all_tensors.begin(), all_tensors.end() - 1);
    const auto device = *rt::GpuDevice::open(emulator::start_driver());
    codegen::ImageOptions options;
    options.block_warps = static_cast<std::uint32_t>(tuning.block_warps);
    auto image =
        codegen::make_image(kernels, {codegen::TargetKind::Cuda, codegen::kEmulatedArch}, options);
    EXPECT_TRUE(image) << (image ? "" : image.error().message);
    if (!image) return results;
    std::string error;
    const auto list =
        GpuList::open(*rt::GpuProgram::load(device, std::move(*image)), tensors, error, tuning);
    EXPECT_NE(list, nullptr) << error;
    for (std::uint64_t step = 0; step < kSteps && list; ++step) {
      std::vector<std::vector<float>> gradients;
      for (std::size_t t = 0; t < tensors.size(); ++t) gradients.push_back(gradient(t, step));
      results.push_back(list->step(gradients, step));
    }
    return results;
  }

  void expect_same(const Results& found, const std::string& what) const {
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (std::size_t step = 0; step < found.size(); ++step) {
      for (std::size_t t = 0; t < found[step].size(); ++t) {
        EXPECT_FALSE(found[step][t].encode_error) << found[step][t].encode_error->message;
        EXPECT_FALSE(found[step][t].payload.empty());
        EXPECT_EQ(compare(expected[step][t], found[step][t]), "")
            << what << ", step " << step << ", tensor " << t;
      }
    }
  }

  void check_cpu() const {
    const rt::CpuTuning extremes[] = {{1, 1, 0},
                                      {1, kManyBlocks, 0},
                                      {1, kManyBlocks, kMany},
                                      {kMany, 1, 0},
                                      {kMany, kManyBlocks, 20000}};
    for (const rt::CpuTuning& tuning : extremes) {
      std::vector<rt::SessionOptions> tensors = all_tensors;
      for (rt::SessionOptions& tensor : tensors) {
        tensor.threads = 3;
        tensor.tuning = tuning;
      }
      expect_same(on_cpu(tensors), fmt::format("CPU: {} {} {}", tuning.task_bytes,
                                               tuning.tasks_per_thread, tuning.single_task_bytes));
    }
  }

  void check_gpu() const {
    std::vector<rt::GpuTuning> extremes = {{2, 1, 1, 1, 0, 0},
                                           {16, 1, kMany, kManyBlocks, kMany, kMany}};
    if (is_long_run()) extremes.push_back({4, kManyBlocks, 64, kManyBlocks, kMany, 0});
    for (const rt::GpuTuning& tuning : extremes) {
      expect_same(on_gpu(tuning), fmt::format("GPU: {} {} {} {} {} {}", tuning.block_warps,
                                              tuning.blocks_per_multiprocessor,
                                              tuning.service_elements, tuning.most_service_blocks,
                                              tuning.one_launch_elements, tuning.fold_elements));
    }
  }

  std::vector<std::int64_t> sizes = {700, 1025, 4500, 40000};
  kir::KernelProgram kernels;
  std::shared_ptr<const rt::LoadedProgram> loaded;
  std::vector<rt::SessionOptions> all_tensors;
  Results expected;
};

// One test for both: compiling the program takes most of the time.
TEST_P(TuningBits, follow_no_number_of_a_cpu_or_a_gpu) {
  check_cpu();
  check_gpu();
}

// Partials of more tiles than a block of two warps takes at once, beside tensors of few and of one.
class FoldBits : public TuningBits {
 protected:
  FoldBits() { sizes = {1, 1024, 1025, 2 * 1024 * 1024 + 1, 700}; }
};

TEST_P(FoldBits, are_those_of_one_block) {
  if (is_sample_run() && GetParam() != std::string("onebit")) GTEST_SKIP() << "takes long";
  const rt::GpuTuning folds{.block_warps = 2, .fold_elements = 0};
  expect_same(on_gpu(folds), "folded");
}

// Two sums and two numbers counted; every reduction that there is.
INSTANTIATE_TEST_SUITE_P(Programs, FoldBits, ::testing::Values("onebit", "reductions"),
                         [](const auto& info) { return std::string(info.param); });

INSTANTIATE_TEST_SUITE_P(Programs, TuningBits, ::testing::ValuesIn(programs_to_run()),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cinch::testing
