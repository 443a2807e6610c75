// Statements: let, assignments, loops and assertions.
#pragma once

#include <optional>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class Statements : Part {
 public:
  using Part::Part;

  void statement(ast::StmtId id);

 private:
  void let(const ast::Let& node, Span span);
  void let_tuple(const ast::LetTuple& node, Span span);
  void bind(const ast::Name& name, bool is_mutable, Value value, std::optional<ast::ExprId> written,
            Span span);
  Value unused_block(ast::BlockId id);
  void for_loop(const ast::For& node, Span span);
  void while_loop(const ast::While& node, Span span);
  void assertion(const ast::Assert& node, Span span);
  void report_not_mutable(const ast::Name& name, const Symbol& symbol);
  const Symbol* assignable(const ast::Assign& node);
  bool is_in_condition(const Symbol& symbol) const;
  void assign(const ast::Assign& node, Span span);
  IndexFacts assign_whole(const ast::Assign& node, const Symbol& symbol, const Type& type,
                          Span span);
  Value updated(const ast::Assign& node, const Symbol& symbol, const Value& value, Span span);
  Value update(ast::BinaryOp op, const Value& before, const Value& value, Span span);
  void report_repeats(const ast::Assign& node, Span span);
  void assign_indexed(const ast::Assign& node, const Symbol& symbol, const Type& type, Span span);

  static constexpr char kLoopVariable[] = "a loop variable";

  /// In the condition of a `while`: the first number of the condition's own variables.
  std::optional<std::size_t> condition_vars_;
};

}  // namespace cinch::sema
