// Reductions and scans, of whole arrays or along an axis.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Reductions : Part {
 public:
  using Part::Part;

  /// The type of a reduction along an axis; -1: of all elements.
  Type reduced_type(const Type& type, int axis, DType dtype);
  /// Is the length along the axis known before launch? Reports a count.
  bool is_known_line(const Value& x, int axis, std::string_view name);
  /// A reduction by name.
  Value reduce_call(BuiltinId id, const CallArgs& args);
  /// `reduce(x, init, |a, b| e)`.
  Value reduce_lambda_call(const CallArgs& args);
  /// `scan` and `cumsum`.
  Value scan_call(BuiltinId id, const CallArgs& args);

 private:
  Value dot_call(const CallArgs& args);
  Value reduced(BuiltinId id, const CallArgs& args, std::vector<Value> xs, DType result);
  bool joins_scalars(std::size_t first_expr, std::size_t first_stmt);
  std::optional<std::pair<Value, Value>> lambda_pair(const CallArgs& args, const Value& x,
                                                     Value& init);
};

}  // namespace cinch::sema
