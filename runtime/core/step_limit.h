// Counts all steps that change how a program is compiled but not what it means: rewrites of passes,
// fusion steps, passes over kernels. A limit allows to bisect a wrong result: the first limit at
// which it shows names the step.
#pragma once
#include <cstdint>
#include <limits>

namespace cinch::rt {

class StepLimit {
 public:
  StepLimit() = default;
  explicit StepLimit(std::int64_t limit) : limit_(limit) {}

  /// False once the limit is reached.
  bool has_leave() const { return taken_ < limit_; }
  /// Ask before each step. Counts the step if it is permitted.
  bool may_take() {
    if (!has_leave()) return false;
    ++taken_;
    return true;
  }
  void count(std::int64_t steps) { taken_ += steps; }
  std::int64_t taken() const { return taken_; }
  std::int64_t left() const { return limit_ - taken_; }

 private:
  std::int64_t taken_ = 0;
  std::int64_t limit_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace cinch::rt
