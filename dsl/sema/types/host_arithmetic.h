// Arithmetic on what the host knows: constants, sizes, and in sizes also parameters. Exact integers
// stay integers; a float that meets a size in clamp, min or max is first made an integer.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class HostArithmetic : Part {
 public:
  using Part::Part;

  /// An operator on numbers of the host; an error value where the host has no such operator.
  Value host_scalar_op(ScalarOp op, std::span<const Value> values, Span span);
  /// Numbers of which a fn's signature gave some a type: the bits are those of that type's
  /// arithmetic, and the number stays known to the host where it is proved to fit.
  Value declared_scalar_op(ScalarOp op, const std::vector<Value>& args, Span span,
                           std::string_view name);
  /// Element by element on tables of constants; numbers among them broadcast.
  Value as_table_op(ScalarOp op, std::span<const Value> args, Span span);

 private:
  Value host_unify(ScalarOp op, std::vector<HostExprId>& args, Span span);
  std::optional<HostExprId> big_shift(std::span<const HostExprId> args);
  /// The same with no report of a constant that overflows; invalid where there is no host form.
  HostExprId host_op(ScalarOp op, std::vector<HostExprId> args, Span span);
};

}  // namespace cinch::sema
