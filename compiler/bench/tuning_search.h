// Finds tuning numbers by measuring: one number after the other, each of its candidates beside the
// value in use, in turns; at the end all that was found beside all that was there before.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/bench/rounds.h"
#include "runtime/tuning/numbers.h"

namespace cinch::bench {

/// Something to do under given numbers, ready to be timed again and again. It may throw.
template <typename Tuning>
using TuningWorkload = std::function<Contestant(const Tuning&)>;

struct TuningSearchOptions {
  double seconds = 60;  // for all of it, about
  /// After each comparison of one workload.
  std::function<void(std::size_t done, std::size_t total)> progress = [](std::size_t, std::size_t) {
  };
};

/// Ratios are geometric means over the workloads of median times, over those of the numbers that
/// the candidate is compared with; below 1 is faster.
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
  Tuning numbers;  // the ones from before, where the ones found are not faster together
  std::vector<TunedNumber> by_number;
  double ratio = 1;  // of all that was found, in the last comparison; 1 where nothing changed
};

/// Any value may be chosen only where it saves at least this share: what is less is noise.
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
