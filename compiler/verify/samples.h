// Means over seeds, and when one is too far from what is claimed to be chance.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/verify/trial.h"

namespace cinch::verify {

/// Most standard errors that chance is granted.
inline constexpr double kStandardErrors = 5;

/// Running mean and variance (Welford).
class Moments {
 public:
  void add(double x) {
    ++count_;
    const double from_mean = x - mean_;
    mean_ += from_mean / static_cast<double>(count_);
    squares_ += from_mean * (x - mean_);
  }
  double mean() const { return mean_; }
  std::size_t count() const { return count_; }
  double variance() const { return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1); }

 private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

/// How many standard errors the mean is above (or, below: negative) `expected`. `largest`: the most
/// that one sample can add. What is seldom and large may not have come yet: then the samples vary
/// less than the quantity does, so the variance is taken to be at least that of the seldom event
/// that would make up for the distance.
double standard_errors(const Moments& samples, double expected, double largest);

/// Does any function of the program draw random numbers? If not, one sample says all.
bool draws_random_numbers(const ir::Program& program);

/// What one sample decoded to.
using Sampled = std::function<void(const std::vector<float>& decoded)>;

/// Decodes the input's payload once for each of up to `wanted` seeds, new tensors each, as long as
/// there is time for this share of the law. Gives the number of samples.
rt::Result<std::size_t> sample_seeds(const Trial& trial, const Input& input, std::size_t wanted,
                                     Clock::time_point until, const Sampled& sampled);

/// The time that input `index` of `count` may take until, when those before took what they took.
Clock::time_point share_of_time(const Trial& trial, std::size_t index, std::size_t count);

double norm_squared(std::span<const float> x);
double distance_squared(std::span<const float> x, std::span<const float> y);

}  // namespace cinch::verify
