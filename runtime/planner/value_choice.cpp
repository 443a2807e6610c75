#include "runtime/planner/value_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cinch::rt {
namespace {

using Choice = std::vector<std::size_t>;

Status check_curves(const ValueCurves& curves, std::size_t uniform) {
  for (const std::vector<ValuePoint>& curve : curves) {
    if (curve.size() != curves[0].size()) return invalid("tensors with other values than others");
    for (const ValuePoint& point : curve) {
      const bool is_error = std::isfinite(point.squared_error) && point.squared_error >= 0;
      if (!is_error || point.bytes < 0) return invalid("a value whose error is not finite");
    }
  }
  if (!curves.empty() && uniform < curves[0].size()) return Ok{};
  return invalid("no value to choose from");
}

double error_of(const ValueCurves& curves, const Choice& choice) {
  double sum = 0;
  for (std::size_t t = 0; t < curves.size(); ++t) sum += curves[t][choice[t]].squared_error;
  return sum;
}

std::int64_t bytes_of(const ValueCurves& curves, const Choice& choice) {
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < curves.size(); ++t) sum += curves[t][choice[t]].bytes;
  return sum;
}

// Goes through tensors and keeps, for each number of steps of error, the fewest bytes. Errors are
// rounded up to steps, so what comes out is within the budget.
class Table {
 public:
  Table(const ValueCurves& curves, double budget) : curves_(curves), step_(budget / kSteps) {}

  // None: rounding leaves no choice.
  std::vector<std::size_t> run() {
    least_.assign(kSteps + 1, 0);
    for (const std::vector<ValuePoint>& curve : curves_) add(curve);
    if (least_[kSteps] == kNone) return {};
    Choice choice(curves_.size());
    std::size_t left = kSteps;
    for (std::size_t t = curves_.size(); t-- > 0;) {
      choice[t] = taken_[t][left];
      left -= steps_of(curves_[t][choice[t]]);
    }
    return choice;
  }

 private:
  static constexpr std::size_t kSteps = 10'000;
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  std::size_t steps_of(const ValuePoint& point) const {
    if (point.squared_error == 0) return 0;
    const double steps = std::ceil(point.squared_error / step_);
    return steps <= kSteps ? static_cast<std::size_t>(steps) : kSteps + 1;
  }

  // least_[e]: the fewest bytes of the tensors so far with at most e steps of error.
  void add(const std::vector<ValuePoint>& curve) {
    std::vector<std::int64_t> next(kSteps + 1, kNone);
    std::vector<std::uint16_t>& taken = taken_.emplace_back(kSteps + 1);
    for (std::size_t value = 0; value < curve.size(); ++value) {
      const std::size_t steps = steps_of(curve[value]);
      for (std::size_t e = steps; e <= kSteps; ++e) {
        if (least_[e - steps] == kNone) continue;
        const std::int64_t bytes = least_[e - steps] + curve[value].bytes;
        if (bytes >= next[e]) continue;
        next[e] = bytes;
        taken[e] = static_cast<std::uint16_t>(value);
      }
    }
    least_ = std::move(next);
  }

  const ValueCurves& curves_;
  const double step_;
  std::vector<std::int64_t> least_;
  std::vector<std::vector<std::uint16_t>> taken_;  // by tensor and steps
};

}  // namespace

Result<Choice> choose_values(const ValueCurves& curves, std::size_t uniform) {
  constexpr std::size_t kMostValues = 1000;
  CINCH_TRY(check_curves(curves, uniform));
  if (curves[0].size() > kMostValues) {
    return invalid(
        fmt::format("{} values: at most {} are compared", curves[0].size(), kMostValues));
  }
  Choice best(curves.size(), uniform);
  const double budget = error_of(curves, best);
  if (budget == 0) {
    // Only values without any error are within it.
    for (std::size_t t = 0; t < curves.size(); ++t) {
      for (std::size_t value = 0; value < curves[t].size(); ++value) {
        const ValuePoint& point = curves[t][value];
        if (point.squared_error == 0 && point.bytes < curves[t][best[t]].bytes) best[t] = value;
      }
    }
    return best;
  }
  const Choice found = Table(curves, budget).run();
  const bool is_better = !found.empty() && error_of(curves, found) <= budget &&
                         bytes_of(curves, found) < bytes_of(curves, best);
  return is_better ? found : best;
}

Result<Choice> choose_values_of_each(const ValueCurves& curves,
                                     std::span<const double> squared_norms, std::size_t uniform) {
  CINCH_TRY(check_curves(curves, uniform));
  if (squared_norms.size() != curves.size()) return invalid("other norms than tensors");
  double norms = 0;
  for (const double norm : squared_norms) norms += norm;
  const double errors = error_of(curves, Choice(curves.size(), uniform));
  const double share = norms > 0 ? errors / norms : 0;
  Choice choice;
  for (std::size_t t = 0; t < curves.size(); ++t) {
    const double most = share * squared_norms[t];
    const auto is_better = [&](const ValuePoint& a, const ValuePoint& b) {
      const bool a_fits = a.squared_error <= most, b_fits = b.squared_error <= most;
      if (a_fits != b_fits) return a_fits;
      return a_fits ? a.bytes < b.bytes : a.squared_error < b.squared_error;
    };
    const auto best = std::ranges::min_element(curves[t], is_better);
    choice.push_back(static_cast<std::size_t>(best - curves[t].begin()));
  }
  return choice;
}

}  // namespace cinch::rt
