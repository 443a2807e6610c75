// Means over seeds, and a test whether one is too far from a claim to be chance.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/verify/trial.h"

namespace cinch::verify {

/// A larger distance, in standard errors, is not chance.
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

/// How many standard errors the mean is above `expected` (negative: below). `largest`: the most
/// that one sample can add. A rare, large value may be missing from the samples, which then vary
/// less than the quantity does. So the variance is taken to be at least that of the rare event that
/// would make up for the distance.
double standard_errors(const Moments& samples, double expected, double largest);

/// Does any function of the program draw random numbers? If not, one sample is enough.
bool draws_random_numbers(const ir::Program& program);

/// Receives what one sample decoded to.
using Sampled = std::function<void(const std::vector<float>& decoded)>;

/// Decodes the input's payload once for each of up to `wanted` seeds, with a new tensor for each,
/// while this share of the law's time lasts. Returns the number of samples.
rt::Result<std::size_t> sample_seeds(const Trial& trial, const Input& input, std::size_t wanted,
                                     Clock::time_point until, const Sampled& sampled);

/// The deadline of input `index` of `count`, given the time that the inputs before it took.
Clock::time_point share_of_time(const Trial& trial, std::size_t index, std::size_t count);

double norm_squared(std::span<const float> x);
double distance_squared(std::span<const float> x, std::span<const float> y);

}  // namespace cinch::verify
