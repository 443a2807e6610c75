// Formulas as people read them.
#pragma once
#include "runtime/core/host_expr.h"

namespace cinch::driver {

/// The same sum with equal terms taken together: 4 * n + 4 * n is 8 * n, and the whole bytes of
/// 32 * n bits are 4 * n.
HostExprId collected(HostExprPool& pool, HostExprId sum);

}  // namespace cinch::driver
