// Lines through measured times: a cost for each call and one for each byte or element.
#pragma once
#include <span>

namespace cinch::rt {

/// seconds = base + slope * size
struct Line {
  double base = 0, slope = 0;
  double at(double size) const { return base + slope * size; }
  friend bool operator==(const Line&, const Line&) = default;
};

struct Sample {
  double size = 0, seconds = 0;
  friend bool operator==(const Sample&, const Sample&) = default;
};

/// How far the line is from the samples, as shares of their times.
struct FittedLine {
  Line line;
  double typical_error = 0;  // median
  double largest_error = 0;
  friend bool operator==(const FittedLine&, const FittedLine&) = default;
};

/// Neither base nor slope is negative. Errors relative to the times are what counts, so that short
/// exchanges are met as well as long ones; a sample far from the others counts little. Samples
/// without a time are left out.
FittedLine fit_line(std::span<const Sample> samples);

}  // namespace cinch::rt
