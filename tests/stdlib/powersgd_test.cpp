// Runs PowerSGD on matrices whose rank is at most that of the compressor. It must restore them at
// any scale, also when the rank grows from step to step.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tests/programs/harness/rank_runs.h"
#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

struct Matrix {
  std::int64_t rows, cols;
  std::vector<float> values;
};

// Returns pseudorandom numbers in [-1, 1). In practice a matrix of them has full rank.
float scattered(std::int64_t i) {
  const double x = std::sin(static_cast<double>(i) * 12.9898) * 43758.5453;
  return static_cast<float>(2 * (x - std::floor(x)) - 1);
}

Matrix of_rank(int rank, std::int64_t rows, std::int64_t cols, float scale = 1) {
  Matrix m{rows, cols, {}};
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    double sum = 0;
    for (int k = 0; k < rank; ++k) {
      sum += scattered(i / cols * 64 + k) * scattered(5000 + i % cols * 64 + k);
    }
    m.values.push_back(scale * static_cast<float>(sum));
  }
  return m;
}

Matrix outer_product() {
  Matrix m{64, 32, {}};
  for (int i = 0; i < 64 * 32; ++i) {
    const int row = i / 32 + 1, column = i % 32 + 1;
    m.values.push_back(static_cast<float>(row * column));
  }
  return m;
}

Matrix two_equal_rows() {
  Matrix m{2, 500, {}};
  for (std::int64_t i = 0; i < 1000; ++i) m.values.push_back(scattered(i % 500));
  return m;
}

double relative_error(const std::vector<float>& update, const std::vector<float>& gradient) {
  double lost = 0, all = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double d = static_cast<double>(update.at(i)) - gradient[i];
    lost += d * d;
    all += static_cast<double>(gradient[i]) * gradient[i];
  }
  return std::sqrt(lost / all);
}

RankCase steps_of_one_rank(const std::vector<Matrix>& steps) {
  RankCase made;
  made.options.rows = steps[0].rows;
  made.options.cols = steps[0].cols;
  for (const Matrix& step : steps) made.gradients.push_back({step.values});
  return made;
}

double last_error(const RankResults& results, const std::vector<Matrix>& steps) {
  const RankResult& last = results.back().front();
  EXPECT_EQ(last.error, "");
  return last.error.empty() ? relative_error(last.update, steps.back().values) : HUGE_VAL;
}

Compiled powersgd(double rank) {
  auto program = make_program("powersgd", library_text("lowrank/powersgd.cinch"));
  program->bindings = {{"rank", rank}};
  auto compiled = compile(*program);
  EXPECT_TRUE(compiled);
  return std::move(*compiled);
}

// Runs the compiled program with rank 4, the default. The interpreter must return the same bits.
class PowerSgd : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    compiled_program = new Compiled(powersgd(4));
    loaded_program = new Loaded(load(compiled_program->kernels));
  }
  static void TearDownTestSuite() {
    delete loaded_program;
    delete compiled_program;
  }
  // Returns the error of the last step's update relative to its gradient.
  static double error_of(const std::vector<Matrix>& steps) {
    const RankCase one_case = steps_of_one_rank(steps);
    const RankResults results = run_ranks_on_cpu(*loaded_program, one_case);
    EXPECT_EQ(compare(interpret_ranks(compiled_program->oracle, one_case), results), "");
    return last_error(results, steps);
  }

 private:
  static inline Compiled* compiled_program = nullptr;
  static inline Loaded* loaded_program = nullptr;
};

TEST_F(PowerSgd, GivesMatricesOfLowRankBack) {
  EXPECT_LT(error_of({outer_product()}), 1e-6);
  EXPECT_LT(error_of({two_equal_rows()}), 1e-6);
  EXPECT_LT(error_of({of_rank(3, 100, 80)}), 1e-6);
  EXPECT_LT(error_of({of_rank(1, 500, 1)}), 1e-6);
}

TEST_F(PowerSgd, GivesTwoEqualRowsBackAtRankEight) {
  const std::vector<Matrix> steps = {two_equal_rows()};
  EXPECT_LT(last_error(interpret_ranks(powersgd(8).oracle, steps_of_one_rank(steps)), steps), 1e-6);
}

TEST_F(PowerSgd, FindsMoreWhenTheRankGrows) {
  EXPECT_LT(error_of({of_rank(0, 64, 32), of_rank(4, 64, 32)}), 1e-6);
  EXPECT_LT(error_of({of_rank(1, 64, 32), of_rank(3, 64, 32), of_rank(3, 64, 32)}), 1e-6);
}

TEST_F(PowerSgd, WorksAtAnyScale) {
  const Matrix tiny = of_rank(3, 64, 32, 1e-25f), huge = of_rank(3, 64, 32, 1e25f);
  EXPECT_LT(error_of({tiny, tiny}), 1e-6);
  EXPECT_LT(error_of({huge, huge}), 1e-6);
  EXPECT_LT(error_of({tiny, huge}), 1e-6);
}

}  // namespace
}  // namespace cinch::testing
