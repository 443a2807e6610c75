// Finds tuning numbers by measuring. It takes one number after the other and compares each
// candidate with the value in use, in turns. At the end it compares all new values with all old
// ones.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/tuning/tuning.h"

namespace cinch::bench {
// What all measurements share. They measure several contestants in turns, so that noise of the
// machine affects all of them alike.

struct RoundLimits {
  double seconds = 1;  // no new round begins after this
  int least = 5, most = 101;
};

struct Rounds {
  std::vector<double> medians;  // milliseconds, one per contestant
  int count = 0;
};

/// Does its work once and returns the milliseconds that it took.
using Contestant = std::function<double()>;
/// Runs a first round without measuring, then rounds until a limit ends them.
Rounds take_turns(const std::vector<Contestant>& contestants, const RoundLimits& limits);

/// Milliseconds that the work takes.
double timed_ms(const std::function<void()>& work);

/// The gradient to measure with if the user gives none: normal with standard deviation 0.01,
/// always the same. It repeats after 2^20 elements.
std::vector<float> made_up_gradient(std::int64_t num_elems);

/// Work to measure under given numbers, again and again. It may throw.
template <typename Tuning>
using TuningWorkload = std::function<Contestant(const Tuning&)>;

struct TuningSearchOptions {
  double seconds = 60;  // for the whole search, about
  /// Called after each comparison of one workload.
  std::function<void(std::size_t done, std::size_t total)> progress = [](std::size_t, std::size_t) {
  };
};

/// Ratios are geometric means over the workloads. Each compares the candidate's median time with
/// that of the current numbers; below 1 is faster.
struct TriedValue {
  std::int64_t value = 0;
  double ratio = 1;
};

struct TunedNumber {
  const char* name = "";
  std::int64_t before = 0, after = 0;
  std::vector<TriedValue> tried;
};

template <typename Tuning>
struct Tuned {
  Tuning numbers;  // the old ones, if the new ones together are not faster
  std::vector<TunedNumber> by_number;
  double ratio = 1;  // of all new values, in the last comparison; 1 if nothing changed
};

/// A value is chosen only if it saves at least this share; less is noise.
inline constexpr double kWorthwhileSaving = 0.02;

template <typename Tuning>
Tuned<Tuning> search_tuning(const Tuning& before,
                            const std::vector<TuningWorkload<Tuning>>& workloads,
                            const TuningSearchOptions& options);

extern template Tuned<rt::CpuTuning> search_tuning(
    const rt::CpuTuning&, const std::vector<TuningWorkload<rt::CpuTuning>>&,
    const TuningSearchOptions&);
extern template Tuned<rt::GpuTuning> search_tuning(
    const rt::GpuTuning&, const std::vector<TuningWorkload<rt::GpuTuning>>&,
    const TuningSearchOptions&);

}  // namespace cinch::bench
