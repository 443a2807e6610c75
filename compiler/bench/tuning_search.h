// Finds tuning numbers by measuring. It takes one number after the other and compares each
// candidate with the value in use, in turns. At the end it compares all new values with all old
// ones.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/bench/rounds.h"
#include "runtime/tuning/numbers.h"

namespace cinch::bench {

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
