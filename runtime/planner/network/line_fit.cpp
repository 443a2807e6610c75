// Lines through measured times; see network_model.h.
#include "runtime/planner/network/network_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace cinch::rt {
namespace {

// Errors above this share weigh linearly, not quadratically.
constexpr double kUsualError = 0.25;
constexpr int kRounds = 30;

// base * u + slope * v should be 1.
struct Row {
  double u = 0, v = 0, weight = 1;
  double error(const Line& line) const { return line.base * u + line.slope * v - 1; }
};

// Least squares. If base or slope would be negative, it becomes zero and the other is fitted alone.
Line solve(std::span<const Row> rows) {
  double uu = 0, uv = 0, vv = 0, u = 0, v = 0;
  for (const Row& row : rows) {
    uu += row.weight * row.u * row.u;
    uv += row.weight * row.u * row.v;
    vv += row.weight * row.v * row.v;
    u += row.weight * row.u;
    v += row.weight * row.v;
  }
  const double determinant = uu * vv - uv * uv;
  if (determinant > 1e-12 * uu * vv) {
    const Line line{(u * vv - v * uv) / determinant, (v * uu - u * uv) / determinant};
    if (line.base >= 0 && line.slope >= 0) return line;
    if (line.base < 0) return {0, v / vv};
  }
  return uu > 0 ? Line{u / uu, 0} : Line{};
}

// Do all samples have one size, not zero? Then calls are taken to have no base cost.
bool are_one_size(std::span<const Sample> samples) {
  return std::ranges::all_of(
      samples, [&](const Sample& s) { return s.size == samples[0].size && s.size > 0; });
}

}  // namespace

FittedLine fit_line(std::span<const Sample> samples) {
  std::vector<Row> rows;
  for (const Sample& sample : samples) {
    if (sample.seconds > 0) rows.push_back({1 / sample.seconds, sample.size / sample.seconds});
  }
  if (rows.empty()) return {};
  FittedLine fitted;
  if (are_one_size(samples)) {
    for (Row& row : rows) row.u = 0;
    double v = 0, vv = 0;
    for (const Row& row : rows) {
      v += row.v;
      vv += row.v * row.v;
    }
    fitted.line = {0, v / vv};
  } else {
    for (int round = 0; round < kRounds; ++round) {
      fitted.line = solve(rows);
      for (Row& row : rows) {
        const double error = std::abs(row.error(fitted.line));
        row.weight = error > kUsualError ? kUsualError / error : 1;
      }
    }
  }
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const Row& row : rows) errors.push_back(std::abs(row.error(fitted.line)));
  std::ranges::sort(errors);
  fitted.typical_error = errors[errors.size() / 2];
  fitted.largest_error = errors.back();
  return fitted;
}

}  // namespace cinch::rt
