// Whole programs on the emulated GPU against a CPU session, bit for bit: lists of tensors of the
// edge sizes, each call in one launch and in many (then with folds), single tensors, several kinds
// of data, steps with states between them; a non-finite gradient in one tensor leaves the others
// unharmed; f16 and bf16. The order of blocks and warps is another one in every test. Random
// programs run, too. A part of all programs; CINCH_LONG=1 runs all, all sizes and data, and
// several such orders for each program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "codegen/emit/c_family.h"
#include "codegen/emulator/driver.h"
#include "codegen/jit/compile_program.h"
#include "tests/environment.h"
#include "tests/programs/generator/generator.h"
#include "tests/programs/harness/compile.h"
#include "tests/programs/harness/gpu_list.h"
#include "tests/programs/harness/matrix.h"

namespace cinch::testing {
namespace {

rt::SessionOptions options_for(const ProgramFile& program, const Case& one_case,
                               std::uint32_t tensor) {
  rt::SessionOptions options;
  options.rows = one_case.rows;
  options.cols = one_case.cols;
  options.threads = 1;
  options.world = program.world;
  options.worker = program.world > 1 ? 1 : 0;
  options.seed = 0x123456789abcdefull;
  options.tensor = tensor;
  options.piece = 1;
  return options;
}

// Whose message it is is not compared: a list's error names the tensor.
void forget_message(std::optional<rt::Error>& error) {
  if (error) error->message.clear();
}

// What is compared of a step: of no elements, neither device runs anything.
StepResult comparable(StepResult result, bool is_empty) {
  forget_message(result.encode_error);
  forget_message(result.decode_error);
  forget_message(result.finish_error);
  if (is_empty) result.states.clear();
  return result;
}

class GpuCheck : public ::testing::Test {
 public:
  GpuCheck(ProgramFile program, bool is_random)
      : program_(std::move(program)),
        is_random_(is_random),
        is_of_second_half_(std::hash<std::string>()(program_.name) % 2 == 1) {}

  void TestBody() override {
    const auto compiled = compile(program_);
    ASSERT_TRUE(compiled) << compiled.error();
    const auto loaded = load_for(compiled->kernels, architectures().present.back());
    ASSERT_TRUE(loaded) << loaded.error();
    loaded_ = *loaded;
    const auto image =
        codegen::make_image(compiled->kernels, {codegen::TargetKind::Cuda, codegen::kEmulatedArch});
    ASSERT_TRUE(image) << image.error().message;
    expect_folds(compiled->kernels, *image);
    const std::uint64_t seed = std::hash<std::string>()(program_.name);
    ASSERT_EQ(load_on_gpu(*image, seed), "");
    const std::vector<std::vector<Case>> all = lists(compiled->oracle.info.is_matrix);
    run_lists(all);
    run_types(all.back().back());
    for (std::uint64_t i = 1; i <= kMoreSchedules; ++i) {
      if (!is_long_run() || is_random_ || HasFailure()) break;
      ASSERT_EQ(load_on_gpu(*image, seed + i), "");
      EXPECT_EQ(run_list(list_of_blocks(compiled->oracle.info.is_matrix), true), "")
          << "schedule " << seed + i;
    }
    on_gpu_.reset();
  }

 private:
  static constexpr std::uint64_t kMoreSchedules = 4;

  // All partials that kernelize makes may be folded.
  static void expect_folds(const kir::KernelProgram& kernels, const rt::ProgramImage& image) {
    for (std::size_t k = 0; k < kernels.kernels.size(); ++k) {
      const bool reduces = codegen::uses(kernels.kernels[k], kir::InstrKind::finish_reduce);
      EXPECT_EQ(image.kernels[k].cuda.is_foldable, reduces) << image.kernels[k].symbol;
    }
  }

  // With a GPU whose blocks and warps come in the order of this seed.
  std::string load_on_gpu(const rt::ProgramImage& image, std::uint64_t seed) {
    emulator::GpuOptions gpu;
    gpu.schedule_seed = seed;
    const auto device = rt::GpuDevice::open(emulator::start_driver(gpu));
    if (!device) return device.error().message;
    const auto program = rt::GpuProgram::load(*device, image);
    if (!program) return program.error().message;
    on_gpu_ = *program;
    return {};
  }

  // The list of all shapes by many launches, the others by one; a long run does all both ways.
  void run_lists(const std::vector<std::vector<Case>>& all) {
    for (const std::vector<Case>& list : all) {
      const bool is_first = &list == &all.front();
      EXPECT_EQ(run_list(list, is_first), "") << describe(list);
      if (is_long_run()) EXPECT_EQ(run_list(list, !is_first), "") << describe(list);
      if (HasFailure()) break;
    }
  }

  void run_types(const Case& one_case) {
    for (const DType dtype : {kF16, kBF16}) {
      if (HasFailure() || is_random_) break;
      if (!is_long_run() && (dtype == kF16) == is_of_second_half_) continue;
      const rt::SessionOptions options = options_for(program_, one_case, 1);
      EXPECT_EQ(compare_types(loaded_, on_gpu_, options, dtype), "") << dtype_name(dtype);
    }
  }

  // Two tensors whose kernels have several blocks each, where the program takes vectors of any
  // size.
  std::vector<Case> list_of_blocks(bool is_matrix) const {
    if (!program_.shapes.empty() || is_matrix) {
      const Case last = cases_for(program_, is_matrix, false).back();
      return {{last.rows, last.cols, DataKind::Normal, 2},
              {last.rows, last.cols, DataKind::HeavyTailed, 2}};
    }
    return {{20011, 1, DataKind::Normal, 2}, {9001, 1, DataKind::HeavyTailed, 2}};
  }

  std::vector<std::vector<Case>> lists(bool is_matrix) const {
    // There are many random programs: few cases each.
    if (is_random_) {
      return {{{1, 1, DataKind::Normal, 2},
               {33, 1, DataKind::HeavyTailed, 2},
               {1025, 1, DataKind::Normal, 2}},
              {{2500, 1, DataKind::Sparse, 2}}};
    }
    std::vector<Case> all = cases_for(program_, is_matrix, is_long_run());
    if (is_long_run()) {
      std::vector<std::vector<Case>> singles;
      for (const Case& one : all) singles.push_back({one});
      singles.push_back(all);
      return singles;
    }
    // All shapes in one list, and one of middle size alone with data that takes other ways.
    std::vector<Case> shapes;
    for (const Case& one : all) {
      if (one.steps == 2) shapes.push_back(one);
    }
    // Three tiles and some: what more of them would show, CPUs show sooner.
    if (shapes.back().cols == 1 && shapes.back().rows == 5000) shapes.back().rows = 3073;
    const Case company = shapes[std::min<std::size_t>(shapes.size() - 1, 7)];
    if (is_sample_run() && shapes.size() > 3) shapes.erase(shapes.begin() + 3, shapes.end());
    std::vector<std::vector<Case>> lists = {shapes};
    const DataKind alone = is_of_second_half_ ? DataKind::HeavyTailed : DataKind::Zeros;
    for (const DataKind kind : {alone, DataKind::NaN}) {
      const Case other = {shapes[shapes.size() / 2].rows, shapes[shapes.size() / 2].cols, kind, 3};
      // Non-finite gradients have company.
      lists.push_back(kind == DataKind::NaN
                          ? std::vector<Case>{company,
                                              other,
                                              {other.rows, other.cols, DataKind::Infinity, 3},
                                              shapes[shapes.size() / 2]}
                          : std::vector<Case>{other});
      if (is_sample_run()) break;
    }
    return lists;
  }

  static std::string describe(const std::vector<Case>& list) {
    std::string text;
    for (const Case& one : list) {
      text += fmt::format("{}x{} {}; ", one.rows, one.cols, data_kind_name(one.data));
    }
    return text;
  }

  static std::vector<float> gradient(const Case& one, std::uint64_t step) {
    const bool is_bad = one.data == DataKind::NaN || one.data == DataKind::Infinity;
    const DataKind kind = is_bad && step != 1 ? DataKind::Normal : one.data;
    return make_gradient(kind, one.rows * one.cols, 17 * step + 5);
  }

  // Each call in one launch, or in as many as for large tensors, whose partials are folded.
  std::string run_list(const std::vector<Case>& list, bool has_many_launches) {
    std::vector<rt::SessionOptions> options;
    std::vector<rt::Session> sessions;
    std::uint64_t steps = 0;
    for (const Case& one : list) {
      options.push_back(options_for(program_, one, static_cast<std::uint32_t>(options.size()) + 3));
      auto session = rt::Session::open(loaded_, options.back());
      if (!session) return "open: " + session.error().message;
      sessions.push_back(std::move(*session));
      steps = std::max(steps, one.steps);
    }
    std::string error;
    rt::GpuTuning tuning;
    if (has_many_launches) tuning.one_launch_elements = tuning.fold_elements = 0;
    const auto gpu = GpuList::open(on_gpu_, options, error, tuning);
    if (!gpu) return "open on the GPU: " + error;
    for (std::uint64_t step = 0; step < steps && error.empty(); ++step) {
      error = run_step_of(list, sessions, *gpu, step);
    }
    return error;
  }

  static std::string run_step_of(const std::vector<Case>& list, std::vector<rt::Session>& sessions,
                                 GpuList& gpu, std::uint64_t step) {
    std::vector<std::vector<float>> gradients;
    for (const Case& one : list) gradients.push_back(gradient(one, step));
    const std::vector<StepResult> found = gpu.step(gradients, step);
    for (std::size_t t = 0; t < list.size(); ++t) {
      const bool is_empty = gradients[t].empty();
      const StepResult expected =
          comparable(testing::run_step(sessions[t], gradients[t], step), is_empty);
      const std::string difference = compare(expected, comparable(found[t], is_empty));
      if (difference.empty()) continue;
      const auto& failed = found[t].encode_error ? found[t].encode_error : found[t].decode_error;
      return fmt::format("tensor {} ({}x{}), step {}: {}{}", t, list[t].rows, list[t].cols, step,
                         difference, failed ? "\n" + failed->message : "");
    }
    return {};
  }

  ProgramFile program_;
  bool is_random_;
  // A short run divides kinds of data and types of tensors between two halves of the programs.
  bool is_of_second_half_;
  std::shared_ptr<const rt::LoadedProgram> loaded_;
  std::shared_ptr<const rt::GpuProgram> on_gpu_;
};

void register_every_nth(const std::filesystem::path& folder, std::size_t n) {
  for (const ProgramFile& program : everyday_part_of(compressors_of(folder), n)) {
    ::testing::RegisterTest("Gpu", program.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [=]() -> GpuCheck* { return new GpuCheck(program, false); });
  }
}

// A sixth of a round of the generator's table, for generator_test takes all of it on the CPU;
// CINCH_TEST_PROGRAMS and CINCH_TEST_FIRST as there.
void register_random_programs() {
  constexpr std::uint64_t kOfASample = 2;
  const std::uint64_t round = programs_per_round();
  const std::uint64_t usual = is_long_run() ? 20 * round : is_sample_run() ? kOfASample : round / 6;
  const std::uint64_t count = number_from("CINCH_TEST_PROGRAMS", usual);
  const std::uint64_t first = number_from("CINCH_TEST_FIRST", 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const GeneratedProgram generated = generate_program(first + i);
    // A text whose directives are not understood is a program that does not compile.
    const ProgramFile program =
        make_program(generated.name, generated.text).value_or(ProgramFile{.name = generated.name});
    const std::string name = fmt::format("number_{}", first + i);
    ::testing::RegisterTest("GpuRandom", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [=]() -> GpuCheck* { return new GpuCheck(program, true); });
  }
}

}  // namespace
}  // namespace cinch::testing

int main(int argc, char** argv) {
  using namespace cinch::testing;
  ::testing::InitGoogleTest(&argc, argv);
  // `cinch verify` compares devices on the whole library (stdlib_verify).
  register_every_nth(CINCH_STDLIB_DIR, 6);
  register_every_nth(CINCH_PROGRAMS_DIR, 2);
  register_random_programs();
  return RUN_ALL_TESTS();
}
