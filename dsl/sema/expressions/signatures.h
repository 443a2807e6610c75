// Signatures of `fn`s: parameters and results in their declared types, and the sizes that are bound
// by them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Signatures : Part {
 public:
  using Part::Part;

  /// What a fn gives as its signature says, of several values each.
  Value to_result(const Value& value, ast::TypeId id, Span span, std::string_view what);
  /// Binds the sizes and parameters of a fn to the arguments; reports what does not suit.
  bool bind_fn_params(const ast::Fn& fn, const std::vector<Value>& args, Environment& inner);
  /// Unknown sizes for those that a parameter's type names.
  void declare_generic_sizes(const ast::Param& param);
  /// The type of a parameter when a fn is checked without a caller.
  std::optional<Type> checked_type(const ast::Param& param);

 private:
  bool bind_generic_sizes(const ast::ArrayType& type, const Value& arg, Scope& scope);
  Value to_declared(const Value& value, ast::TypeId id, Span span, std::string_view what);
};

}  // namespace cinch::sema
