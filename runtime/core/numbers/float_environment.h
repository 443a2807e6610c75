// While one lives, this thread computes with the default floating-point environment: round to
// nearest, subnormals kept, no traps. The host thread's own modes come back when it ends.
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
