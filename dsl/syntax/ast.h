// The tree of one file: flat vectors of plain structs addressed by typed 32-bit ids; every node has
// a span. The parser builds it, the checker (dsl/sema) and the formatter read it; nothing changes
// it later. A node's alternatives are a std::variant: read with std::get_if or std::visit. Lists
// are ranges of id pools inside Module: `for (ExprId e : module.list(call.args))`.
//
// What the parser has already made sure of (when it reported no error):
//   - no tree is deeper than kMaxDepth levels, so recursive walks are safe;
//   - an expression statement that is not the last of its block is an `if` or a block;
//   - Block::value is the block's last expression. An `if` without a value in every branch (no
//     `else`, or a branch that ends in a statement) is a statement and never Block::value;
//   - the target of an assignment is a name or a name with indices.
// What it leaves to the checker: names, types, which items a compressor must have, number of
// parameters of encode / decode / finish / sync, order and repetition of items, repeated names, the
// words behind `claims`.
#pragma once
#include <string_view>

#include "dsl/syntax/ast/declarations.h"
#include "dsl/syntax/ast/expressions.h"
#include "dsl/syntax/ast/ids.h"
#include "dsl/syntax/ast/module.h"
#include "dsl/syntax/ast/statements.h"
#include "dsl/syntax/ast/types.h"

namespace cinch::dsl {

// How programs write the tree's enums.

/// `*`, `&&`, …
std::string_view spelling(ast::BinaryOp op);
/// `-`, `!`.
std::string_view spelling(ast::UnaryOp op);
/// `encode`, `decode`, `finish`, `sync`.
std::string_view spelling(ast::MethodKind kind);
/// `sum`, `min`, `max`; "" for None.
std::string_view spelling(ast::Aggregation aggregation);
/// Larger binds tighter; equal ones form one chain.
int precedence(ast::BinaryOp op);

}  // namespace cinch::dsl
