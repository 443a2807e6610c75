#include "compiler/bench/rounds.h"

#include <algorithm>
#include <chrono>

#include "runtime/core/lang.h"

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

namespace {

constexpr std::size_t kPeriod = std::size_t{1} << 20;
constexpr float kDeviation = 0.01f;

}  // namespace

std::vector<float> made_up_gradient(std::int64_t num_elems) {
  const std::uint32_t words[lang::kDrawWords] = {1};
  const lang::DrawStream stream = lang::draw_stream(words, 0, false);
  std::vector<float> values(static_cast<std::size_t>(num_elems));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i < kPeriod ? kDeviation * lang::normal(stream, static_cast<std::uint32_t>(i))
                            : values[i - kPeriod];
  }
  return values;
}

}  // namespace cinch::bench
