// The loop that passes with local rewrites share: every op is offered once, in order; what is built
// for it stands in front of it.
#pragma once

#include <functional>
#include <optional>

#include "compiler/ir/builder.h"
#include "compiler/ir/ir.h"
#include "compiler/passes/pass_context.h"

namespace cinch::passes {

/// Builds in front of the op (the builder's insertion point) and gives a value for each result, or
/// nothing where the op stays. It must build nothing where it gives nothing. The regions around the
/// op hold what stands before it, and nothing behind.
using Rewrite = std::function<std::optional<ir::ValueIds>(ir::Builder& builder, ir::OpId op)>;

/// Offers every op of every function, initial values, inner regions and combiners included, as long
/// as the context gives leave; counts what was replaced. A replaced op is taken out and its uses
/// changed before the next is offered. True where something changed.
bool rewrite_all(ir::Program& program, PassContext& context, const Rewrite& rewrite);

}  // namespace cinch::passes
