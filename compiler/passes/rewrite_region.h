// The loop that passes with local rewrites share. It offers every op once, in order; the rewrite
// inserts new ops before the offered one.
#pragma once

#include <functional>
#include <optional>

#include "compiler/ir/builder.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/pass_context.h"

namespace cinch::passes {

/// Builds before the op (the builder's insertion point) and returns a value for each result, or
/// nothing if the op stays. It must build nothing if it returns nothing. The regions around the op
/// hold only the ops before it.
using Rewrite = std::function<std::optional<ir::ValueIds>(ir::Builder& builder, ir::OpId op)>;

/// Offers every op of every function, including initial values, inner regions and combiners, while
/// the context permits it, and counts replacements. A replaced op is removed and its uses changed
/// before the next op is offered. Returns true if anything changed.
bool rewrite_all(ir::Program& program, PassContext& context, const Rewrite& rewrite);

}  // namespace cinch::passes
