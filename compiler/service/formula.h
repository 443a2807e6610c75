// Formulas as people read them.
#pragma once
#include <string>

#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::service {

/// The same sum with equal terms taken together: 4 * n + 4 * n is 8 * n, and the whole bytes of
/// 32 * n bits are 4 * n.
HostExprId collected(HostExprPool& pool, HostExprId sum);

/// "ceil_div(n, 8)", with the names of the program's parameters and counts.
std::string formula_text(rt::ProgramInfo& info, HostExprId id);

/// The same, shorter where sizes of the program are in it: "4 * k + 80, where k = ceil(ratio * n)".
std::string formula_with_sizes(rt::ProgramInfo& info, HostExprId id);

/// Bytes that a payload has at most: 64, the counts, then each field from the next multiple of 16
/// on.
HostExprId payload_bound(rt::ProgramInfo& info);

}  // namespace cinch::service
