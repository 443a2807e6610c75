// Numbers that are known before a program runs: constants of files and of expressions, and sizes
// that the host computes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Constants : Part {
 public:
  using Part::Part;

  /// An expression that the host must compute, as an Int; reports and gives nothing otherwise.
  std::optional<HostExprId> host_size(ast::ExprId id, std::string_view what);
  /// The number as a value.
  Value constant(const Constant& number, Span span);
  /// A constant expression; reports and gives nothing where it is none.
  std::optional<Constant> constant_number(ast::ExprId id);
  /// The same, where numbers of 2^63 or more are floats.
  std::optional<HostValue> constant_value(ast::ExprId id);
  /// The same of a whole number.
  std::optional<std::int64_t> constant_int(ast::ExprId id);
  /// The value of a file's constant, computed once where it is made of numbers alone.
  Value const_value(const DeclRef& decl, const ast::Const& node);
  /// A number of a file that is known when the program is compiled; reports.
  std::optional<Constant> evaluate_constant(const FileUnit& unit, ast::ExprId id);
  /// Checks a constant of a file.
  void check_const(const DeclRef& decl);

 private:
  Value on_host(ast::ExprId id);
  Value known_const(const KnownConst& known, Span span);
  std::optional<KnownConst> as_known_const(const Value& value);
  Value elaborate_const_value(const DeclRef& decl, const ast::Const& node);

  std::vector<const void*> open_consts_;  // that are being elaborated
};

}  // namespace cinch::sema
