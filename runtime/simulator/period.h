// Exchanges that not every step has: of local steps, in fragments, begun before they are used, and
// now and then in f32.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

struct PeriodRules {
  std::uint32_t every = 1;      // steps from one exchange of a tensor to the next
  std::uint32_t fragments = 1;  // in which tensors are exchanged in turns, spread over `every`
  std::uint32_t delay = 0;      // steps between an exchange's begin and the use of what it brings
  std::uint32_t correct = 0;    // each so many exchanges of a tensor, one in f32; 0: none
};

/// What one step does, and how long ranks wait at its end.
struct PeriodStep {
  std::optional<std::uint32_t> begins, uses;  // fragments
  bool corrects = false;                      // the exchange that begins is in f32
  double wait_seconds = 0;
};

struct Period {
  std::vector<PeriodStep> steps;
  double seconds = 0;  // of all of them, waits included
};

/// Seconds that ranks compute in a step, and that each fragment's exchange takes, alone on its
/// links, in payloads and in f32. One exchange is under way at a time, as in cinch.torch. The
/// period is one after others, so exchanges of the period before may still be under way.
/// Errors: InvalidArgument (more fragments than steps, a delay that is not shorter than `every`,
/// unless every step exchanges).
Result<Period> period_of(const PeriodRules& rules, double step_seconds,
                         const std::vector<double>& exchange_seconds,
                         const std::vector<double>& exact_seconds);

/// Errors: as of period_of.
Status check_period(const PeriodRules& rules);

}  // namespace cinch::rt
