// Tests THC. Updates and residuals must add up to the gradients over many steps. The lookup table
// must be the best of its size and grid: the one whose unbiased rounding of a clipped normal number
// has the least variance. Dynamic programming finds it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <vector>

#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/rank_runs.h"
#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

using ::testing::ElementsAreArray;

double density(double a) {
  return std::exp(-a * a / 2) / std::sqrt(2 * std::acos(-1.0));
}
double below(double a) {
  return std::erfc(-a / std::sqrt(2.0)) / 2;
}

// Returns the magnitude that a standard normal number exceeds with probability p, by bisection.
double clipped_at(double p) {
  double low = 0, high = 20;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (2 * (1 - below(middle)) > p ? low : high) = middle;
  }
  return low;
}

// Returns the variance that unbiased rounding to a or b adds to normal numbers between them. It is
// the integral of (x - a) (b - x) times the normal density from a to b.
double variance_between(double a, double b) {
  const double square = (below(b) - b * density(b)) - (below(a) - a * density(a));
  const double mean = density(a) - density(b);
  return -square + (a + b) * mean - a * b * (below(b) - below(a));
}

// Returns the best table T with 2^bits places, T[0] = 0 and T[last] = grid. Tables are symmetric:
// T[z] + T[last - z] = grid. So the function searches only the lower half: the cheapest path
// through the lower half of the grid. The step from T[half - 1] to T[half] crosses the middle, so
// it counts once and all others count twice.
std::vector<int> best_table(int grid, int bits, double exceeded) {
  const double t = clipped_at(exceeded);
  const auto cost = [&](int i, int j) {
    return variance_between(-t + 2 * t * i / grid, -t + 2 * t * j / grid);
  };
  const int half = 1 << (bits - 1), points = (grid + 1) / 2;
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> least(half, std::vector<double>(points, kNone));
  std::vector<std::vector<int>> from(half, std::vector<int>(points, -1));
  least[0][0] = 0;
  for (int z = 1; z < half; ++z) {
    for (int j = 1; j < points; ++j) {
      for (int i = 0; i < j; ++i) {
        const double sum = least[z - 1][i] + 2 * cost(i, j);
        if (sum < least[z][j]) least[z][j] = sum, from[z][j] = i;
      }
    }
  }
  int last = -1;
  double best = kNone;
  for (int i = 0; i < points; ++i) {
    const double sum = least[half - 1][i] + cost(i, grid - i);
    if (sum < best) best = sum, last = i;
  }
  std::vector<int> table(2 * static_cast<std::size_t>(half));
  for (int z = half - 1; z >= 0; last = from[z--][last]) {
    table[z] = last;
    table[2 * half - 1 - z] = grid - last;
  }
  return table;
}

// The expected tables are those in the program of THC's authors (arXiv 2302.08545).
TEST(Thc, TablesAreOptimal) {
  EXPECT_NEAR(clipped_at(1.0 / 32), 2.153875, 1e-6);
  EXPECT_THAT(best_table(16, 3, 1.0 / 32), ElementsAreArray({0, 3, 5, 7, 9, 11, 13, 16}));
  EXPECT_THAT(best_table(30, 4, 1.0 / 32),
              ElementsAreArray({0, 3, 5, 7, 9, 11, 13, 14, 16, 17, 19, 21, 23, 25, 27, 30}));
  EXPECT_THAT(best_table(34, 3, 1.0 / 32), ElementsAreArray({0, 6, 11, 15, 19, 23, 28, 34}));
  EXPECT_THAT(best_table(34, 4, 1.0 / 32),
              ElementsAreArray({0, 3, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 31, 34}));
  EXPECT_THAT(best_table(34, 2, 1.0 / 512), ElementsAreArray({0, 13, 21, 34}));
  EXPECT_THAT(best_table(30, 4, 1.0 / 512),
              ElementsAreArray({0, 4, 7, 9, 11, 12, 13, 14, 16, 17, 18, 19, 21, 23, 26, 30}));
}

TEST(Thc, TheLibrarysTableIsTheOptimalOne) {
  const std::string text = library_text("quantize/thc.cinch");
  const std::string name = "const optimal = [";
  const auto begin = text.find(name);
  ASSERT_NE(begin, std::string::npos);
  const auto first = begin + name.size();
  std::string list = text.substr(first, text.find(']', begin) - first);
  for (char& c : list) c = c == ',' ? ' ' : c;
  std::istringstream numbers(list);
  std::vector<int> table;
  for (int value; numbers >> value;) table.push_back(value);
  EXPECT_THAT(table, ElementsAreArray(best_table(30, 4, 1.0 / 32)));
  EXPECT_NE(text.find("const bound = 2.153875"), std::string::npos);
}

constexpr std::size_t kElems = 3000, kRanks = 3, kSteps = 20;

RankCase several_steps() {
  RankCase made;
  made.options.rows = kElems;
  made.options.world = kRanks;
  made.options.seed = 7;
  for (std::size_t step = 0; step < kSteps; ++step) {
    auto& gradients = made.gradients.emplace_back();
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      gradients.push_back(make_gradient(DataKind::Normal, kElems, 100 * step + rank));
    }
  }
  return made;
}

RankResults results_of(const RankCase& one_case,
                       std::vector<std::pair<std::string, double>> bindings) {
  auto program = make_program("thc", library_text("quantize/thc.cinch"));
  program->bindings = std::move(bindings);
  const Loaded loaded = load(*program);
  return loaded == nullptr ? RankResults() : run_ranks_on_cpu(loaded, one_case);
}

// Checks element by element that all updates plus the mean of the last residuals equal the sum of
// the mean gradients. The residuals must be small but not zero.
void expect_nothing_lost(const RankCase& one_case, const RankResults& results) {
  ASSERT_EQ(results.size(), kSteps);
  double squares = 0, lost = 0, kept = 0;
  for (std::size_t i = 0; i < kElems; ++i) {
    double sum = 0, left = 0;
    for (std::size_t step = 0; step < kSteps; ++step) {
      sum -= results[step][0].update.at(i);
      for (const auto& gradient : one_case.gradients[step]) sum += gradient[i] / kRanks;
    }
    for (const RankResult& rank : results.back()) {
      float residual;
      std::memcpy(&residual, rank.states.at(0).data() + 4 * i, 4);
      left += residual / kRanks;
    }
    squares += one_case.gradients[0][0][i] * one_case.gradients[0][0][i];
    lost += (sum - left) * (sum - left);
    kept += left * left;
  }
  EXPECT_LT(lost, 1e-9 * squares);
  EXPECT_LT(kept, 0.2 * squares);
  EXPECT_GT(kept, 1e-4 * squares);
}

TEST(Thc, LosesNothingOverSteps) {
  const RankCase one_case = several_steps();
  expect_nothing_lost(one_case, results_of(one_case, {{"block", 64}}));
  expect_nothing_lost(one_case, results_of(one_case, {{"block", 2048}, {"uniform", 1}}));
}

}  // namespace
}  // namespace cinch::testing
