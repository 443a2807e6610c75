// Operators that are written in Cinch (prelude/*.cinch). A call of such a function is checked with
// the types and sizes at hand, and its body is lowered in place of the operator. All of it has the
// span of the operator, so that no message points into the prelude.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "compiler/ir/builder.h"

namespace cinch::lower {

// A value of the IR, or a number that the host computes: sizes and constants.
using PreludeArgument = std::variant<ir::ValueId, HostExprId, std::int64_t>;
// The number of elements that each selection kept, by count.
using FoundCounts = std::unordered_map<std::uint32_t, ir::ValueId>;

// What a call needs during lowering: a name for its counts, the message of its `assert`s, and the
// counts in sight, to which it adds its own.
struct PreludeContext {
  std::string name, message;
  FoundCounts& counts;
};

// Calls `function` at the end of the builder's region, and returns its results. `T` in its text
// means `element`. Indices of the prelude are in bounds, and those of its `scatter_add` ascend:
// nothing is checked but its `assert`s.
std::vector<ir::ValueId> call_prelude(ir::Builder& builder, std::string_view function,
                                      DType element, const std::vector<PreludeArgument>& arguments,
                                      const PreludeContext* context = nullptr);

// All functions of the prelude.
std::string prelude_text();

}  // namespace cinch::lower
