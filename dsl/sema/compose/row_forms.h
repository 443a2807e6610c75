// A compressor of vectors on every row of a matrix (`set inner.r = rows`): its vectors are matrices
// of as many rows, its scalars are matrices of one column, and what reduces does so along rows.
#pragma once

#include <optional>
#include <string_view>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class RowForms : Part {
 public:
  using Part::Part;

  /// Reports what has no such form.
  Value not_by_rows(std::string_view what, Span span);
  /// Does the operator work along rows?
  bool has_row_form(BuiltinId id) const;
  /// A declared type, for all rows; reports and gives nothing where it is a matrix already.
  std::optional<Type> by_rows(const Type& type, Span span);
};

}  // namespace cinch::sema
