// Nodes of statements and blocks.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "dsl/syntax/ast/ids.h"

namespace cinch::ast {

/// `let name = value`, `let mut name = value`.
struct Let {
  Name name;
  bool is_mutable = false;
  ExprId value;
};

/// `let (a, b) = value`.
struct LetTuple {
  std::vector<Name> names;
  ExprId value;
};

/// `target = value` if `indices` is empty, else `target[indices] = value`. With `is_update`,
/// `target += value` and the like.
struct Assign {
  Name target;
  IdRange<ExprId> indices;
  ExprId value;
  bool is_update = false;
  BinaryOp op = BinaryOp::Add;
};

/// `for variable in bounds { … }`.
struct For {
  Name variable;
  IntervalId bounds;
  BlockId body;
};

/// `while condition, at_most: limit { … }`.
struct While {
  ExprId condition;
  ExprId limit;
  BlockId body;
};

/// `assert condition, "message"`. Escapes in `message` are resolved.
struct Assert {
  ExprId condition;
  std::string message;
  Span message_span;
};

/// An expression that is not the value of its block: an `if` or a block.
struct ExprStmt {
  ExprId expr;
};

struct Stmt {
  Span span;
  std::variant<Let, LetTuple, Assign, For, While, Assert, ExprStmt> node;
};

/// `{ stmts… value }`, where `value` may be none. The span includes the braces.
struct Block {
  Span span;
  IdRange<StmtId> stmts;
  ExprId value;
};

}  // namespace cinch::ast
