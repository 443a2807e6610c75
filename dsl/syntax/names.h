// Spellings of the tree's enums, shared by printer and dump.
#pragma once

#include <string_view>

#include "dsl/syntax/ast.h"

namespace cinch::dsl {

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
