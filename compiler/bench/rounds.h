// What all measurements share. They measure several contestants in turns, so that noise of the
// machine affects all of them alike.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace cinch::bench {

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

}  // namespace cinch::bench
