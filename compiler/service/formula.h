// Formulas in the form that people read.
#pragma once
#include <string>

#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::service {

/// The same sum with equal terms combined: 4 * n + 4 * n becomes 8 * n, and the whole bytes of 32 *
/// n bits become 4 * n.
HostExprId collected(HostExprPool& pool, HostExprId sum);

/// "ceil_div(n, 8)", with the names of the program's parameters and counts.
std::string formula_text(rt::ProgramInfo& info, HostExprId id);

/// The same, shortened by names of the program's sizes: "4 * k + 80, where k = ceil(ratio * n)".
std::string formula_with_sizes(rt::ProgramInfo& info, HostExprId id);

/// Replaces `formula` by the name of the size that it defines, wherever it needs no brackets.
/// Returns whether it did.
bool name_size(std::string& text, const std::string& formula, const std::string& name);

/// The most bytes of a payload: 64, the counts, then each field at the next multiple of 16.
HostExprId payload_bound(rt::ProgramInfo& info);

}  // namespace cinch::service
