#include "runtime/simulator/period.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

namespace cinch::rt {
namespace {

constexpr std::uint64_t kMostPeriods = 1000;
constexpr std::uint64_t kMostSteps = 100'000;  // of a period
constexpr double kSameTime = 1e-9;

}  // namespace

Status check_period(const PeriodRules& rules) {
  if (rules.every == 0 || rules.fragments == 0) return invalid("a period of no steps");
  if (std::uint64_t{rules.every} * std::max(1U, rules.correct) > kMostSteps) {
    return invalid(fmt::format("a period of {} exchanges, {} steps apart, has more than {} steps",
                               std::max(1U, rules.correct), rules.every, kMostSteps));
  }
  if (rules.fragments > rules.every) {
    return invalid(fmt::format("{} fragments are more than the {} steps that they take turns in",
                               rules.fragments, rules.every));
  }
  const bool is_short = rules.delay < rules.every || (rules.every == 1 && rules.delay == 1);
  if (is_short) return Ok{};
  return invalid(fmt::format("a delay of {} steps is no shorter than {} steps between exchanges",
                             rules.delay, rules.every));
}

Result<Period> period_of(const PeriodRules& rules, double step_seconds,
                         const std::vector<double>& exchange_seconds,
                         const std::vector<double>& exact_seconds) {
  CINCH_TRY(check_period(rules));
  struct Exchange {
    std::uint32_t fragment = 0;
    std::uint64_t used_at = 0;  // step
    double end = 0;
  };
  std::deque<Exchange> under_way;
  const std::uint64_t rounds = std::max(1U, rules.correct), length = rounds * rules.every;
  // By step of those between two exchanges. The last fragment goes at the end.
  std::vector<std::optional<std::uint32_t>> begins(rules.every);
  for (std::uint32_t f = 0; f < rules.fragments; ++f) {
    begins[std::uint64_t{f + 1} * rules.every / rules.fragments - 1] = f;
  }
  double now = 0, links_free = 0, before = 0, late = -1;
  Period made;
  // Until a period ends as late as the one before.
  for (std::uint64_t step = 0; step < kMostPeriods * length; ++step) {
    if (step > 0 && step % length == 0) {
      const double late_now = std::max(0.0, links_free - now);
      if (std::abs(late_now - late) <= kSameTime * step_seconds && step > length) break;
      late = late_now;
      made.steps.clear();
      before = now;
    }
    PeriodStep& of = made.steps.emplace_back();
    now += step_seconds;
    of.begins = begins[step % rules.every];
    if (of.begins) {
      const std::uint32_t f = *of.begins;
      of.corrects = rules.correct > 0 && (step / rules.every) % rounds == rounds - 1;
      const double seconds = of.corrects ? exact_seconds[f] : exchange_seconds[f];
      links_free = std::max(links_free, now) + seconds;
      under_way.push_back({f, step + rules.delay, links_free});
    }
    while (!under_way.empty() && under_way.front().used_at == step) {
      of.uses = under_way.front().fragment;
      of.wait_seconds += std::max(0.0, under_way.front().end - now);
      now = std::max(now, under_way.front().end);
      under_way.pop_front();
    }
  }
  made.seconds = now - before;
  return made;
}

}  // namespace cinch::rt
