// Numbers that the host knows.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// Numbers that are known before a program runs: constants of files and of expressions, and sizes
/// that the host computes.
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

/// Arithmetic on what the host knows: constants, sizes, and in sizes also parameters. Exact
/// integers stay integers; a float that meets a size in clamp, min or max is first made an integer.
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
