// The tree of one file: flat vectors of plain structs, addressed by typed 32-bit ids. Every node
// has a span. The parser builds the tree, the checker (dsl/sema) and the formatter read it, and
// nothing changes it later. A node is a std::variant: read it with std::get_if or std::visit. Lists
// are ranges of id pools inside Module: `for (ExprId e : module.list(call.args))`.
//
// If the parser reports no error, it guarantees:
//   - no tree is deeper than kMaxDepth levels, so recursive walks are safe;
//   - an expression statement that is not the last of its block is an `if` or a block;
//   - Block::value is the block's last expression. An `if` without a value in every branch (no
//     `else`, or a branch that ends in a statement) is a statement and never Block::value;
//   - the target of an assignment is a name or a name with indices.
// The checker checks the rest: names, types, required items of compressors, the number of
// parameters of encode / decode / finish / sync, order and repetition of items, repeated names, and
// the words after `claims`.
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
/// A larger number binds tighter. Operators with equal numbers form one chain.
int precedence(ast::BinaryOp op);

}  // namespace cinch::dsl
