// The shape of the tensor at hand, for messages about conditions on sizes.
#pragma once

#include <string>

#include "runtime/core/host_expr.h"

namespace cinch {

/// "n = 40"; of a matrix "r = 5, c = 8".
inline std::string shape_text(const HostEnv& env) {
  if (env.cols == 1) return "n = " + std::to_string(env.n);
  return "r = " + std::to_string(env.rows) + ", c = " + std::to_string(env.cols);
}

}  // namespace cinch
