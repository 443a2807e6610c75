// A value of one parameter for each tensor, under a budget of errors.
// Source: Markov et al., "L-GreCo: Layerwise-Adaptive Gradient Compression for Efficient and
// Accurate Deep Learning" (MLSys 2024).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// What a tensor's payload takes with one value, and the squared error of its update.
struct ValuePoint {
  std::int64_t bytes = 0;
  double squared_error = 0;
};

/// By tensor, the points of all values, of which each tensor has equally many.
using ValueCurves = std::vector<std::vector<ValuePoint>>;

/// Returns for each tensor the index of its value: about the fewest bytes whose errors add up to at
/// most those of `uniform` for all, and never more bytes than it takes. Errors: InvalidArgument (no
/// values, uneven curves, errors that are not finite).
Result<std::vector<std::size_t>> choose_values(const ValueCurves& curves, std::size_t uniform);

/// The same where each tensor's relative error is at most that of all tensors together under
/// `uniform`. `squared_norms`: by tensor. A tensor that no value keeps so close takes the one with
/// the least error.
Result<std::vector<std::size_t>> choose_values_of_each(const ValueCurves& curves,
                                                       std::span<const double> squared_norms,
                                                       std::size_t uniform);

}  // namespace cinch::rt
