// Types as a program writes them: scalar types, arrays, and the sizes in them.
#pragma once

#include <optional>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class WrittenTypes : Part {
 public:
  using Part::Part;

  /// A scalar type; reports and gives nothing where it is none.
  std::optional<DType> dtype_of(ast::TypeId id);
  /// A scalar or array type with its sizes; reports and gives nothing where it is none.
  std::optional<Type> type_of(ast::TypeId id);
};

}  // namespace cinch::sema
