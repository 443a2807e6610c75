// Names and expressions.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"
#include "dsl/sema/tree/tree_builder.h"

namespace cinch::sema {

/// Finds what names mean: locals, names that a compressor declares, built-in names, and
/// declarations of files.
class Names : Part {
 public:
  using Part::Part;

  /// The innermost symbol of the name; nullptr if there is none.
  const Symbol* find_symbol(std::string_view name) const;
  /// Reports an unknown name and suggests a similar one.
  void unknown_name(const ast::Name& name);
  /// The value of a symbol at a read of its name.
  Value symbol_value(const Symbol& symbol, const ast::Name& name);
  Value name_expr(const ast::Name& name);
  /// Runs `body` while these names are visible.
  void with_environment(Environment& env, const std::function<void()>& body);
  /// `a.b`: a field of a payload, a name of an imported file, or a parameter of a wrapped
  /// compressor.
  Value field_expr(const ast::FieldRef& node, Span span);
  /// Is the name taken? `instance` is nullptr in a fn.
  static bool is_taken(std::string_view name, const Instance* instance);
  /// Declares a name in the innermost scope. Reports a name that is taken.
  void declare(const ast::Name& name, Symbol symbol);

 private:
  Value builtin_name(const ast::Name& name);
  Value decl_value(const DeclRef& decl, const ast::Name& name);
};

/// Expressions: dispatch by kind, literals, array literals, casts, tuples, blocks, `if` and
/// lambdas.
class Expressions : Part {
 public:
  using Part::Part;

  Value expr(ast::ExprId id);
  /// A condition of `if`, `while` or `assert`, which must be one bool.
  std::optional<ExprId> condition(ast::ExprId id);
  /// Elaborates a block with a scope of its own.
  Value block(ast::BlockId id);
  /// Elaborates a lambda over elements of these types. `finish` turns its value into the result.
  Value lambda(ast::ExprId id, const std::vector<Type>& params, std::string_view name,
               const std::function<Value(Value)>& finish);

 private:
  Value expr_node(ast::ExprId id, const ast::Expr& node);
  Value literal_expr(const ast::Literal& node, Span span);
  Value cast(const ast::Cast& node, Span span);
  Value bitcast(const ast::Bitcast& node, Span span);
  Value tuple(const ast::Tuple& node, Span span);
  Value table_of_rows(Value table, const std::vector<Value>& rows);
  Value array_literal(const ast::ArrayLiteral& node, Span span);
  Value block_in_scope(ast::BlockId id);
  Value if_expr(const ast::If& node, Span span);
  std::optional<bool> decided_condition(const Value& chosen_by);
  Value join_branches(const Value& chosen_by, Value a, Value b, Span span);
  std::optional<DType> type_of_choice(const Value& a, const Value& b);
  bool is_exact_choice(const Value& a, const Value& b);
  bool are_of_one_shape(const Value& a, const Value& b, bool have_type, Span span);
  // Branches of several values (branches_of_several.cpp).
  Value join_several(const Value& chosen_by, Branch& a, Branch& b, Span span);
  Value assigned_in(const Value& first, const Value& second, Branch& a, Branch& b, Span span);
  Value choose(const Value& test, Value a, Value b, Span span);
};

}  // namespace cinch::sema
