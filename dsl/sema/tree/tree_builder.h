// Builds the checked tree: expressions, variables, statements and blocks. Also builds conditions on
// sizes, which are checked before or at run time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

/// The result of a block or a branch: its value, and statements that are not part of the value.
/// Several values, or a payload, have no expression that could hold them.
struct Branch {
  Value value;
  std::vector<StmtId> stmts;
};

class TreeBuilder : Part {
 public:
  using Part::Part;

  /// New statements go into this list; nullptr: nowhere.
  void collect_into(std::vector<StmtId>* stmts) { stmts_ = stmts; }
  /// Adds an expression to the tree and returns its value.
  Value typed(Expr expr);
  VarId add_var(std::string name, const Type& type, bool is_mutable, Span span);
  /// Reads a variable's current value.
  Value read_var(VarId var, Span span);
  /// Adds a statement to the current block.
  void push(Stmt stmt);
  /// Runs `body` with a statement list of its own. The result is a Block if `body` adds statements.
  Value in_block(Span span, const std::function<Value()>& body);
  /// The same, but returns the statements before several values or a payload.
  Branch in_branch(Span span, const std::function<Value()>& body);
  /// Adds the statements that `body` pushes to the end of the branch.
  void into_branch(Branch& branch, const std::function<void()>& body);
  /// Adds the branch's statements to the current block.
  void push_all(const Branch& branch);
  /// Makes a read-only variable for a value that is used more than once.
  Value shared(const Value& value, std::string name);
  /// Does the array's length come from a filter in the current statement? The count is known only
  /// after that filter has run.
  bool holds_filter(const Value& value);
  /// Runs `use`, which checks the length of an operand, after the filters in the operand.
  Value behind_filter(const Value& operand, Span span,
                      const std::function<Value(const Value&)>& use);
  /// Requires a host condition: proves it, reports a mistake, or adds a check before launch.
  bool require(HostExprId condition, const std::string& what, Span span,
               const std::string& found = "");
  /// Requires `a <= b`.
  bool require_at_most(HostExprId a, HostExprId b, const std::string& what, Span span);
  /// Requires `size >= 0`.
  bool require_nonnegative(HostExprId size, const std::string& what, Span span);
  /// Adds an expression of a named operator. `set` fills in its attributes.
  Value builtin(BuiltinId id, Type type, std::vector<ExprId> args, Span span,
                const std::function<void(Expr&)>& set = {});

 private:
  bool has_too_many(const Type& type);
  bool is_leaf(const Value& value) const;
  bool has_filter(ExprId id) const;

  std::vector<StmtId>* stmts_ = nullptr;  // of the current block
};

}  // namespace cinch::sema
