// Fits lines to measured times: a cost for each call plus a cost for each byte or element.
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

/// A line, and its distance from the samples as shares of their times.
struct FittedLine {
  Line line;
  double typical_error = 0;  // median
  double largest_error = 0;
  friend bool operator==(const FittedLine&, const FittedLine&) = default;
};

/// Fits a line whose base and slope are not negative. It minimises errors relative to the times, so
/// that short exchanges fit as well as long ones. Outliers count little. Samples without a time are
/// left out.
FittedLine fit_line(std::span<const Sample> samples);

}  // namespace cinch::rt
