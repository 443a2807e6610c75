// Builds the checked tree: expressions, variables, statements and blocks of statements, and the
// conditions on sizes that are checked before or at run time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// What a block or a branch left: its value, and the statements before it that are not part of the
/// value, as several values or a payload have no expression of their own.
struct Branch {
  Value value;
  std::vector<StmtId> stmts;
};

class TreeBuilder : Part {
 public:
  using Part::Part;

  /// Statements go there from now on; nullptr: nowhere.
  void collect_into(std::vector<StmtId>* stmts) { stmts_ = stmts; }
  /// Adds the expression to the tree; its value.
  Value typed(Expr expr);
  /// Adds a variable.
  VarId add_var(std::string name, const Type& type, bool is_mutable, Span span);
  /// A read of the variable as it is now.
  Value read_var(VarId var, Span span);
  /// Adds the statement to the block at hand.
  void push(Stmt stmt);
  /// Runs `body` with a statement list of its own; a Block when it left statements.
  Value in_block(Span span, const std::function<Value()>& body);
  /// The same, where statements before several values or a payload are given back.
  Branch in_branch(Span span, const std::function<Value()>& body);
  /// Statements that `body` pushes go to the end of the branch.
  void into_branch(Branch& branch, const std::function<void()>& body);
  /// Adds the branch's statements to the block at hand.
  void push_all(const Branch& branch);
  /// A read-only variable for a value that is used more than once.
  Value shared(const Value& value, std::string name);
  /// An array of counted length whose filter belongs to the statement at hand: only where that has
  /// run is its count known.
  bool holds_filter(const Value& value);
  /// `use` of an operand that it checks the length of: behind the filters that the operand holds.
  Value behind_filter(const Value& operand, Span span,
                      const std::function<Value(const Value&)>& use);
  /// Host conditions: proved, a mistake, or checked before launch.
  bool require(HostExprId condition, const std::string& what, Span span,
               const std::string& found = "");
  /// The same of `a <= b`.
  bool require_at_most(HostExprId a, HostExprId b, const std::string& what, Span span);
  /// The same of `size >= 0`.
  bool require_nonnegative(HostExprId size, const std::string& what, Span span);
  /// An expression of a named operator; `set` fills in its attributes.
  Value builtin(BuiltinId id, Type type, std::vector<ExprId> args, Span span,
                const std::function<void(Expr&)>& set = {});

 private:
  bool is_leaf(const Value& value) const;
  bool has_filter(ExprId id) const;

  std::vector<StmtId>* stmts_ = nullptr;  // of the block at hand
};

}  // namespace cinch::sema
