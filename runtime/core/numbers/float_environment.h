// While an object of this class lives, its thread computes with the default floating-point
// environment: round to nearest, subnormals kept, no traps. Its end restores the thread's own
// modes.
#pragma once
#include <cstdint>

namespace cinch::rt {

class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment();
  ~DefaultFloatEnvironment();
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::uint32_t saved_ = 0;
};

}  // namespace cinch::rt
