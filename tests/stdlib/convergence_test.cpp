// Runs several ranks in one process. The tests show that compression alone can move away from the
// optimum or stall, that error feedback converges, and that error feedback loses nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/inputs.h"
#include "tests/programs/harness/sessions.h"

namespace cinch::testing {
namespace {

using Gradients = std::vector<std::vector<float>>;

// Holds a session for each rank and steps all of them together.
class Ranks {
 public:
  Ranks(const std::string& composition, std::size_t num_elems, std::uint32_t world) {
    const auto program =
        make_program("composed",
                     "import std.wrap\nimport std.sign\nimport std.sparsify\nimport std.quantize\n"
                     "compressor composed = " +
                         composition + "\n");
    const Loaded loaded = load(*program);
    rt::SessionOptions options;
    options.rows = static_cast<std::int64_t>(num_elems);
    options.world = world;
    for (options.worker = 0; options.worker < world; ++options.worker) {
      auto opened = open(loaded, options);
      if (opened) sessions_.push_back(std::move(opened));
    }
  }

  // Encodes on each rank, adds up the decoded payloads and returns the update. All ranks must
  // compute the same one.
  std::vector<float> step(const Gradients& gradients) {
    std::vector<float> sum(gradients[0].size(), 0.0f), update(sum.size());
    for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
      EXPECT_TRUE(give_inputs(*sessions_[rank]));
      const auto payload = sessions_[rank]->encode(gradients[rank], step_);
      EXPECT_TRUE(payload);
      if (payload) EXPECT_TRUE(sessions_[0]->decode_add(*payload, sum, step_));
    }
    for (std::size_t rank = 0; rank < sessions_.size(); ++rank) {
      std::vector<float> own(sum.size());
      EXPECT_TRUE(sessions_[rank]->finish(sum, own, step_));
      if (rank == 0) update = own;
      EXPECT_EQ(own, update) << "rank " << rank;
    }
    ++step_;
    return update;
  }

  // Returns the sum over all ranks of the state whose name ends with `name`. The sum is empty if
  // there is no such state.
  std::vector<double> state_sum(std::string_view name) const {
    std::vector<double> sum;
    for (const auto& session : sessions_) {
      for (std::uint32_t i = 0; i < session->info().states.size(); ++i) {
        if (!session->info().states[i].name.ends_with(name)) continue;
        const auto values = values_of<float>(session->state(i).value());
        sum.resize(values.size());
        for (std::size_t k = 0; k < values.size(); ++k) sum[k] += values[k];
      }
    }
    return sum;
  }
  std::size_t world() const { return sessions_.size(); }

 private:
  std::vector<std::unique_ptr<rt::Session>> sessions_;
  std::uint64_t step_ = 0;
};

// Each coordinate has its own scale. Rank 0's gradient is 4 times the scale, and that of the three
// other ranks is -1 times the scale. So the mean is a quarter of the scale, which is positive, but
// three of four signs are negative.
constexpr float kScales[] = {1.0f, 0.1f, 10.0f, 3.0f};

std::vector<double> mean_update(const std::string& composition, int steps) {
  Ranks ranks(composition, 4, 4);
  Gradients gradients(4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    for (float scale : kScales) gradients[rank].push_back(rank == 0 ? 4 * scale : -scale);
  }
  std::vector<double> mean(4, 0.0);
  for (int t = 0; t < steps; ++t) {
    const auto update = ranks.step(gradients);
    for (std::size_t i = 0; i < 4; ++i) mean[i] += update[i] / static_cast<double>(steps);
  }
  return mean;
}

TEST(Counterexample, MajorityOfSignsWalksUphill) {
  for (double each : mean_update("signsgd", 50)) EXPECT_LT(each, 0);
}

TEST(Counterexample, TopKAloneForgetsTheSmallCoordinates) {
  const auto mean = mean_update("topk(ratio: 0.25)", 50);
  EXPECT_NEAR(mean[2], 2.5, 1e-6);
  for (std::size_t i : {0, 1, 3}) EXPECT_EQ(mean[i], 0);
}

TEST(Counterexample, FeedbackDescends) {
  for (const char* composition :
       {"ef_sign", "error_feedback(onebit)", "error_feedback(topk(ratio: 0.25))",
        "ef21(topk(ratio: 0.25))", "ef21(scaled(qsgd(bits: 4, bucket: 4), factor: 0.5))",
        "two_way(topk(ratio: 0.25))", "two_way(onebit)", "dgc(ratio: 0.25, momentum: 0)"}) {
    const auto mean = mean_update(composition, 2000);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(mean[i], 0.25 * kScales[i], 0.02) << composition << " at " << i;
      EXPECT_GT(mean[i], 0) << composition << " at " << i;
    }
  }
}

// One rank has the gradient 4 in about a quarter of its steps and -1 in the others. The mean is
// 1/4. The second coordinate, which the test checks, is half of that.
TEST(Counterexample, DrawnGradientsOfOneRank) {
  Ranks sign("signsgd", 2, 1), feedback("error_feedback(topk(ratio: 0.5))", 2, 1);
  std::mt19937 draw(7);
  double by_sign = 0, by_feedback = 0;
  constexpr int kSteps = 4000;
  for (int t = 0; t < kSteps; ++t) {
    const float g = draw() % 4 == 0 ? 4.0f : -1.0f;
    by_sign += sign.step({{g, 0.5f * g}})[1];
    by_feedback += feedback.step({{g, 0.5f * g}})[1];
  }
  EXPECT_LT(by_sign / kSteps, -0.4);
  EXPECT_NEAR(by_feedback / kSteps, 0.125, 0.05);
}

// Minimizes f(x), the mean over all ranks of 1/2 (x - b)' A (x - b), by gradient descent. A is
// diagonal and each rank has its own b. The optimum is the mean of all b, where no rank's own
// gradient is zero. Returns the distance to the optimum at the end, relative to that at the start.
double distance_left(const std::string& composition, int steps, float rate) {
  constexpr std::size_t kSize = 40, kWorld = 4;
  Ranks ranks(composition, kSize, kWorld);
  Gradients targets;
  std::vector<float> optimum(kSize, 0.0f), x(kSize, 0.0f);
  for (std::size_t rank = 0; rank < kWorld; ++rank) {
    targets.push_back(make_gradient(DataKind::Normal, kSize, 40 + rank));
    for (std::size_t i = 0; i < kSize; ++i) optimum[i] += targets[rank][i] / kWorld;
  }
  const auto distance = [&] {
    double square = 0;
    for (std::size_t i = 0; i < kSize; ++i) square += std::pow(x[i] - optimum[i], 2);
    return std::sqrt(square);
  };
  const double first = distance();
  for (int t = 0; t < steps; ++t) {
    Gradients gradients(kWorld, std::vector<float>(kSize));
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
      for (std::size_t i = 0; i < kSize; ++i) {
        const float curvature = 0.2f + 0.8f * static_cast<float>(i) / kSize;
        gradients[rank][i] = curvature * (x[i] - targets[rank][i]);
      }
    }
    const auto update = ranks.step(gradients);
    for (std::size_t i = 0; i < kSize; ++i) x[i] -= rate * update[i];
  }
  return distance() / first;
}

TEST(Quadratic, FeedbackComesNearTheOptimumAndTopKAloneDoesNot) {
  EXPECT_GT(distance_left("topk(ratio: 0.05)", 3000, 0.05f), 0.3);
  EXPECT_LT(distance_left("error_feedback(topk(ratio: 0.05))", 3000, 0.005f), 0.1);
  EXPECT_LT(distance_left("two_way(topk(ratio: 0.05))", 3000, 0.005f), 0.1);
  EXPECT_LT(distance_left("ef21(topk(ratio: 0.05))", 3000, 0.05f), 1e-3);
}

// Checks after 100 steps that nothing is lost: the sum of the updates, plus the mean over ranks of
// the states `residual` and `owed`, equals the sum of the mean gradients.
void expect_conserved(const std::string& composition, double tolerance) {
  constexpr std::size_t kSize = 500, kWorld = 3;
  Ranks ranks(composition, kSize, kWorld);
  std::vector<double> given(kSize, 0.0), got(kSize, 0.0);
  for (std::uint64_t t = 0; t < 100; ++t) {
    Gradients gradients;
    for (std::size_t rank = 0; rank < kWorld; ++rank) {
      gradients.push_back(make_gradient(DataKind::Normal, kSize, 10 * t + rank));
      for (std::size_t i = 0; i < kSize; ++i) given[i] += gradients[rank][i] / double{kWorld};
    }
    const auto update = ranks.step(gradients);
    for (std::size_t i = 0; i < kSize; ++i) got[i] += update[i];
  }
  const auto residual = ranks.state_sum("residual"), owed = ranks.state_sum("owed");
  double lost = 0, all = 0, waiting = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    const double left = (residual[i] + (owed.empty() ? 0 : owed[i])) / kWorld;
    lost += std::pow(given[i] - got[i] - left, 2);
    all += given[i] * given[i];
    waiting += left * left;
  }
  EXPECT_LT(lost, tolerance * tolerance * all) << composition;
  EXPECT_GT(waiting, 1e-6 * all) << composition << ": nothing waits";
}

TEST(Conservation, OfErrorFeedback) {
  for (const char* inner : {"topk(ratio: 0.05)", "onebit", "qsgd(bits: 6)", "threshold(tau: 2)"}) {
    expect_conserved(std::string("error_feedback(") + inner + ")", 1e-5);
  }
  expect_conserved("ef_sign", 1e-5);
}

TEST(Conservation, OfFeedbackOnBothWays) {
  for (const char* inner : {"topk(ratio: 0.05)", "onebit", "qsgd(bits: 8)", "threshold(tau: 2)",
                            "randomk(ratio: 0.05)", "terngrad"}) {
    expect_conserved(std::string("two_way(") + inner + ")", 1e-5);
  }
}

// `finish` of two_way encodes the sum and decodes it again. Both must draw the same indices. Here
// randomk keeps all elements in a random order, so decoding must restore the gradient.
TEST(Conservation, OwnersDrawsAreThoseOfItsDecode) {
  constexpr std::size_t kSize = 300;
  Ranks ranks("two_way(randomk(ratio: 1))", kSize, 2);
  for (std::uint64_t t = 0; t < 3; ++t) {
    const auto g = make_gradient(DataKind::Normal, kSize, t);
    EXPECT_EQ(ranks.step({g, g}), g);
  }
}

}  // namespace
}  // namespace cinch::testing
