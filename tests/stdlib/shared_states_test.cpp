// Compares onebit_adam and fetchsgd with simple C++ references in double precision. The references
// follow the papers step by step. Where a paper leaves a detail open, they follow its authors'
// program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tests/stdlib/rank_steps.h"

namespace cinch::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

using Doubles = std::vector<double>;

double mean_magnitude(const Doubles& x) {
  double sum = 0;
  for (const double value : x) sum += std::fabs(value);
  return sum / static_cast<double>(x.size());
}

double signed_scale(double value, double scale) {
  return value < 0 ? -scale : scale;
}

// Rounded to f32, because programs hold their parameters in f32.
constexpr double kBeta1 = 0.9f, kBeta2 = 0.999f;

// Algorithm 1 of the 1-bit Adam paper.
class OneBitAdam {
 public:
  OneBitAdam(std::size_t world, std::size_t n, std::size_t freeze)
      : world_(world),
        n_(n),
        part_((n + world - 1) / world),
        freeze_(freeze),
        momentum_(n),
        variance_(n),
        residuals_(world, Doubles(n)),
        owed_(world, Doubles(part_)) {}

  Doubles step(const ByRank& gradients) {
    if (num_steps_++ < freeze_) {
      warm_up(gradients);
    } else {
      momentum_ = exchange(gradients);
    }
    Doubles update(n_);
    for (std::size_t i = 0; i < n_; ++i)
      update[i] = momentum_[i] / (std::sqrt(variance_[i]) + 1e-8);
    return update;
  }

 private:
  void warm_up(const ByRank& gradients) {
    for (std::size_t i = 0; i < n_; ++i) {
      double mean = 0;
      for (const Values& gradient : gradients) mean += gradient[i];
      mean /= static_cast<double>(world_);
      momentum_[i] = kBeta1 * momentum_[i] + (1 - kBeta1) * mean;
      variance_[i] = kBeta2 * variance_[i] + (1 - kBeta2) * mean * mean;
    }
  }

  // Each rank sends its compressed momentum to the owners of the parts. Each owner averages and
  // compresses its part again and sends it to all ranks.
  Doubles exchange(const ByRank& gradients) {
    std::vector<Doubles> sent;
    for (std::size_t rank = 0; rank < world_; ++rank) sent.push_back(send(rank, gradients[rank]));
    Doubles joined(n_);
    for (std::size_t owner = 0; owner < world_; ++owner) {
      const Doubles part = join(owner, sent);
      for (std::size_t j = 0; j < part_ && owner * part_ + j < n_; ++j)
        joined[owner * part_ + j] = part[j];
    }
    return joined;
  }

  // Compresses the momentum of a rank. Positive signs fill up the last part.
  Doubles send(std::size_t rank, const Values& gradient) {
    Doubles p(n_), sent(world_ * part_);
    for (std::size_t i = 0; i < n_; ++i)
      p[i] = kBeta1 * momentum_[i] + (1 - kBeta1) * gradient[i] + residuals_[rank][i];
    const double scale = mean_magnitude(p);
    std::ranges::fill(sent, scale);
    for (std::size_t i = 0; i < n_; ++i) {
      sent[i] = signed_scale(p[i], scale);
      residuals_[rank][i] = p[i] - sent[i];
    }
    return sent;
  }

  Doubles join(std::size_t owner, const std::vector<Doubles>& sent) {
    Doubles q(part_);
    for (std::size_t j = 0; j < part_; ++j) {
      for (const Doubles& from : sent) q[j] += from[owner * part_ + j];
      q[j] = q[j] / static_cast<double>(world_) + owed_[owner][j];
    }
    const double scale = mean_magnitude(q);
    for (std::size_t j = 0; j < part_; ++j) {
      const double kept = q[j];
      q[j] = signed_scale(kept, scale);
      owed_[owner][j] = kept - q[j];
    }
    return q;
  }

  std::size_t world_, n_, part_, freeze_, num_steps_ = 0;
  Doubles momentum_, variance_;
  std::vector<Doubles> residuals_, owed_;
};

constexpr std::array<std::uint32_t, 5> kKeys = {0x2545f491, 0x9e3779b9, 0xb5297a4d, 0x68e31da4,
                                                0x1b56c4e9};

// The cell of an element in one row of a sketch, and the sign with which the cell adds it.
struct Cell {
  std::size_t index;
  double sign;
};
Cell cell_of(std::size_t element, std::size_t row, std::size_t cells) {
  std::uint32_t h = (static_cast<std::uint32_t>(element) ^ kKeys[row]) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  h ^= h >> 16;
  const auto in_row = static_cast<std::size_t>((std::uint64_t{h} * cells) >> 32);
  return {row * cells + in_row, (h & 1) != 0 ? -1.0 : 1.0};
}

// Algorithm 1 of the FetchSGD paper. Like the authors' program, it clears the cells of the elements
// that are sent, where the paper subtracts their values.
class FetchSgd {
 public:
  FetchSgd(std::size_t n, std::size_t cells, std::size_t k)
      : n_(n), cells_(cells), k_(k), velocity_(5 * cells), error_(5 * cells) {}

  Doubles step(const ByRank& gradients) {
    for (double& cell : velocity_) cell *= 0.9;
    for (const Values& gradient : gradients) add(gradient, gradients.size());
    for (std::size_t c = 0; c < error_.size(); ++c) error_[c] += velocity_[c];
    return take_largest(estimates());
  }

 private:
  void add(const Values& gradient, std::size_t world) {
    for (std::size_t row = 0; row < 5; ++row) {
      for (std::size_t i = 0; i < n_; ++i) {
        const Cell cell = cell_of(i, row, cells_);
        velocity_[cell.index] += cell.sign * gradient[i] / static_cast<double>(world);
      }
    }
  }

  Doubles estimates() const {
    Doubles found(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      std::array<double, 5> said{};
      for (std::size_t row = 0; row < 5; ++row) {
        const Cell cell = cell_of(i, row, cells_);
        said[row] = cell.sign * error_[cell.index];
      }
      std::ranges::sort(said);
      found[i] = said[2];
    }
    return found;
  }

  Doubles take_largest(const Doubles& found) {
    std::vector<std::size_t> order(n_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::fabs(found[a]) > std::fabs(found[b]);
    });
    Doubles update(n_);
    for (std::size_t j = 0; j < k_; ++j) {
      update[order[j]] = found[order[j]];
      for (std::size_t row = 0; row < 5; ++row) {
        const Cell cell = cell_of(order[j], row, cells_);
        velocity_[cell.index] = error_[cell.index] = 0;
      }
    }
    return update;
  }

  std::size_t n_, cells_, k_;
  Doubles velocity_, error_;
};

template <typename Reference>
void expect_near(const Loaded& program, const RankCase& one_case, Reference reference) {
  const RankResults results = results_of(program, one_case);
  ASSERT_EQ(results.size(), one_case.gradients.size());
  for (std::size_t step = 0; step < results.size(); ++step) {
    const Doubles update = reference.step(one_case.gradients[step]);
    const Values expected(update.begin(), update.end());
    for (const RankResult& rank : results[step]) {
      ASSERT_EQ(rank.error, "");
      ASSERT_THAT(rank.update, Pointwise(FloatNear(2e-4f), expected)) << "step " << step;
    }
  }
}

// Some lengths are not multiples of the number of ranks, so the last part holds fewer elements.
TEST(OneBitAdam, CompressesMomentumTwiceAfterTheFreeze) {
  const Loaded program = load_library("sign/onebit_adam.cinch", {{"freeze", 3}});
  for (const std::size_t world : {1, 2, 3, 5}) {
    for (const std::size_t n : {60, 64}) {
      expect_near(program, steps_of(world, n, 9, DataKind::Normal), OneBitAdam(world, n, 3));
    }
  }
}

TEST(FetchSgd, KeepsMomentumAndErrorInTables) {
  const Loaded program =
      load_library("sparsify/fetchsgd.cinch", {{"columns", 0.2}, {"ratio", 0.01}});
  for (const std::size_t world : {1, 2, 3}) {
    expect_near(program, steps_of(world, 300, 8, DataKind::Normal), FetchSgd(300, 60, 3));
  }
}

}  // namespace
}  // namespace cinch::testing
