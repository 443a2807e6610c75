#include <algorithm>
#include <chrono>
#include <cmath>

#include "compiler/bench/tuning_search.h"
#include "runtime/core/lang.h"
#include "runtime/core/numbers/number_range.h"

namespace cinch::bench {
namespace {

constexpr int kLeastRounds = 5, kMostRounds = 1001;

template <typename Tuning>
class Search {
 public:
  Search(const std::vector<TuningWorkload<Tuning>>& workloads, const TuningSearchOptions& options)
      : workloads_(workloads),
        options_(options),
        num_comparisons_((rt::tuning_numbers<Tuning>().size() + 1) * workloads.size()) {}

  Tuned<Tuning> run(const Tuning& before) {
    Tuned<Tuning> tuned{before, {}, 1};
    for (const rt::TuningNumber<Tuning>& number : rt::tuning_numbers<Tuning>()) {
      tuned.by_number.push_back(try_number(number, tuned.numbers));
    }
    if (tuned.numbers == before) return tuned;
    tuned.ratio = compare({before, tuned.numbers})[1];
    if (tuned.ratio > 1 - kWorthwhileSaving) tuned.numbers = before;
    return tuned;
  }

 private:
  TunedNumber try_number(const rt::TuningNumber<Tuning>& number, Tuning& numbers) {
    TunedNumber tuned{number.name, numbers.*number.member, numbers.*number.member, {}};
    std::vector<Tuning> contestants = {numbers};
    for (const std::int64_t value : number.candidates) {
      if (value == tuned.before) continue;
      contestants.push_back(numbers);
      contestants.back().*number.member = value;
    }
    const std::vector<double> ratios = compare(contestants);
    double best = 1 - kWorthwhileSaving;
    for (std::size_t i = 0; i < ratios.size(); ++i) {
      tuned.tried.push_back({contestants[i].*number.member, ratios[i]});
      if (i == 0 || ratios[i] >= best) continue;
      best = ratios[i];
      tuned.after = tuned.tried.back().value;
    }
    numbers.*number.member = tuned.after;
    std::ranges::sort(tuned.tried, {}, &TriedValue::value);
    return tuned;
  }

  // By contestant: its time as a ratio to that of the first.
  std::vector<double> compare(const std::vector<Tuning>& contestants) {
    std::vector<double> logs(contestants.size());
    for (const TuningWorkload<Tuning>& workload : workloads_) {
      std::vector<Contestant> ready;
      ready.reserve(contestants.size());
      for (const Tuning& numbers : contestants) ready.push_back(workload(numbers));
      const double seconds = options_.seconds / static_cast<double>(num_comparisons_);
      const Rounds rounds = take_turns(ready, {seconds, kLeastRounds, kMostRounds});
      for (std::size_t i = 0; i < logs.size(); ++i) {
        logs[i] += std::log(rounds.medians[i] / rounds.medians[0]);
      }
      options_.progress(++num_done_, num_comparisons_);
    }
    for (double& value : logs) value = std::exp(value / static_cast<double>(workloads_.size()));
    return logs;
  }

  const std::vector<TuningWorkload<Tuning>>& workloads_;
  const TuningSearchOptions& options_;
  std::size_t num_comparisons_, num_done_ = 0;
};

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPeriod = std::size_t{1} << 20;
constexpr float kDeviation = 0.01f;

}  // namespace

template <typename Tuning>
Tuned<Tuning> search_tuning(const Tuning& before,
                            const std::vector<TuningWorkload<Tuning>>& workloads,
                            const TuningSearchOptions& options) {
  return Search<Tuning>(workloads, options).run(before);
}

template Tuned<rt::CpuTuning> search_tuning(const rt::CpuTuning&,
                                            const std::vector<TuningWorkload<rt::CpuTuning>>&,
                                            const TuningSearchOptions&);
template Tuned<rt::GpuTuning> search_tuning(const rt::GpuTuning&,
                                            const std::vector<TuningWorkload<rt::GpuTuning>>&,
                                            const TuningSearchOptions&);

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
