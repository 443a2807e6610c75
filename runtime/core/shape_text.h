// The shape of a tensor, for messages about conditions on sizes.
#pragma once

#include <string>

#include "runtime/core/sizes/host_expr.h"

namespace cinch {

/// "n = 40"; for a matrix "r = 5, c = 8"; with several ranks "n = 40, world = 3".
inline std::string shape_text(const HostEnv& env) {
  const std::string world = env.world > 1 ? ", world = " + std::to_string(env.world) : "";
  if (env.cols == 1) return "n = " + std::to_string(env.n) + world;
  return "r = " + std::to_string(env.rows) + ", c = " + std::to_string(env.cols) + world;
}

}  // namespace cinch
