// Constants, and arithmetic of the host.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// Numbers that are known before a program runs: constants of files and expressions, and sizes that
/// the host computes.
class Constants : Part {
 public:
  using Part::Part;

  /// Evaluates an expression on the host, as an Int. Reports an expression that the host cannot
  /// compute, and returns nothing. Where counts are sizes, too, a number that is computed on the
  /// device gets a note about them.
  std::optional<HostExprId> host_size(ast::ExprId id, std::string_view what,
                                      bool takes_counts = false);
  Value constant(const Constant& number, Span span);
  /// Evaluates a constant expression. Reports other expressions and returns nothing.
  std::optional<Constant> constant_number(ast::ExprId id);
  /// The same with numbers of 2^63 or more as floats.
  std::optional<HostValue> constant_value(ast::ExprId id);
  /// The same for an integer.
  std::optional<std::int64_t> constant_int(ast::ExprId id);
  /// The value of a file's constant, computed once if it is made of numbers only.
  Value const_value(const DeclRef& decl, const ast::Const& node);
  /// Evaluates a number of a file at compile time; reports other expressions.
  std::optional<Constant> evaluate_constant(const FileUnit& unit, ast::ExprId id);
  void check_const(const DeclRef& decl);

 private:
  Value on_host(ast::ExprId id);
  Value known_const(const KnownConst& known, Span span);
  std::optional<KnownConst> as_known_const(const Value& value);
  Value elaborate_const_value(const DeclRef& decl, const ast::Const& node);

  std::vector<const void*> open_consts_;  // under elaboration
};

/// Arithmetic on constants and sizes; sizes may also use parameters. Integers stay exact. A float
/// that is combined with a size in clamp, min or max is first made an integer.
class HostArithmetic : Part {
 public:
  using Part::Part;

  /// Applies an operator to numbers of the host. Returns an error value if the host has no such
  /// operator.
  Value host_scalar_op(ScalarOp op, std::span<const Value> values, Span span);
  /// Applies an operator to numbers some of which have a type from a fn's signature. The bits are
  /// those of that type's arithmetic. The host still knows the number if it provably fits.
  Value declared_scalar_op(ScalarOp op, const std::vector<Value>& args, Span span,
                           std::string_view name);
  /// Applies an operator to tables of constants, element by element; single numbers broadcast.
  Value as_table_op(ScalarOp op, std::span<const Value> args, Span span);

 private:
  Value host_unify(ScalarOp op, std::vector<HostExprId>& args, Span span);
  std::optional<HostExprId> big_shift(std::span<const HostExprId> args);
  /// The same without a report of overflow. Invalid if the host has no such operator.
  HostExprId host_op(ScalarOp op, std::vector<HostExprId> args, Span span);
};

}  // namespace cinch::sema
