// Operators that move elements: scatter, concat, slice, reshape, transpose, chunk, pack, iota and
// histogram.
#pragma once

#include <optional>
#include <span>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class MoveOperators : Part {
 public:
  using Part::Part;

  /// Any operator of these groups.
  Value move_call(BuiltinId id, const CallArgs& args);

 private:
  Value pack_call(BuiltinId id, const CallArgs& args);
  Value concat_call(const CallArgs& args);
  Value slice_call(const CallArgs& args);
  std::optional<Value> reshaped_table(const Value& table, std::span<const HostExprId> dims);
  static Value transposed_table(const Value& table);
  Value reshape_call(const CallArgs& args);
  Value transpose_call(const CallArgs& args);
  Value chunk_call(BuiltinId id, const CallArgs& args);
  Value iota_call(const CallArgs& args);
  Value histogram_call(const CallArgs& args);
  Value scatter_call(BuiltinId id, const CallArgs& args);
  // `in_rows`: values, indices and result are rows after rows, and each index stays in its row.
  Value scatter_at(const Scatter& how, const Value& v, const Value& at, HostExprId size, Span span,
                   bool in_rows = false);
  Value scatter_rows(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                     Span span);
};

}  // namespace cinch::sema
