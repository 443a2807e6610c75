// Names and expressions.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/sema/elaboration/part.h"
#include "dsl/sema/tree/tree_builder.h"

namespace cinch::sema {

/// What names mean: locals, what a compressor declares, built-in names, and declarations of files.
class Names : Part {
 public:
  using Part::Part;

  /// The innermost symbol of the name; nullptr where there is none.
  const Symbol* find_symbol(std::string_view name) const;
  /// Reports an unknown name, and suggests a near one.
  void unknown_name(const ast::Name& name);
  /// The value of a symbol where the name is read.
  Value symbol_value(const Symbol& symbol, const ast::Name& name);
  /// The value of a name.
  Value name_expr(const ast::Name& name);
  /// Runs `body` with these names in sight.
  void with_environment(Environment& env, const std::function<void()>& body);
  /// `a.b`: a field of a payload, a name of an imported file, or a parameter of what is wrapped.
  Value field_expr(const ast::FieldRef& node, Span span);
  /// May no name of that text be declared there? `instance`: nullptr in a fn.
  static bool is_taken(std::string_view name, const Instance* instance);
  /// Declares a name in the innermost scope; reports names that are taken.
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

  /// The value of an expression.
  Value expr(ast::ExprId id);
  /// A condition of `if`, `while` or `assert`: one bool.
  std::optional<ExprId> condition(ast::ExprId id);
  /// The value of a block, with a scope of its own.
  Value block(ast::BlockId id);
  /// A lambda over elements of these types; `finish` makes its value the result.
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
