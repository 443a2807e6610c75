#include "compiler/bench/rounds.h"

#include <algorithm>
#include <chrono>

namespace cinch::bench {

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

double timed_ms(const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Rounds take_turns(const std::vector<Contestant>& contestants, const RoundLimits& limits) {
  for (const Contestant& contestant : contestants) contestant();
  std::vector<std::vector<double>> times(contestants.size());
  Rounds rounds;
  const Clock::time_point start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  while (rounds.count < limits.least || (rounds.count < limits.most && spent() < limits.seconds)) {
    for (std::size_t i = 0; i < contestants.size(); ++i) times[i].push_back(contestants[i]());
    ++rounds.count;
  }
  for (std::vector<double>& of_one : times) rounds.medians.push_back(median(std::move(of_one)));
  return rounds;
}

}  // namespace cinch::bench
