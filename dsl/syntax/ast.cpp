// The only table of binary operators, and how programs write the other enums of the tree.
#include "dsl/syntax/ast.h"

#include <iterator>

namespace cinch::dsl {

namespace {

struct OperatorRow {
  std::string_view text;
  int precedence;
};

// In the order of ast::BinaryOp.
constexpr OperatorRow kOperators[] = {
    {"*", 9},  {"/", 9}, {"%", 9},  {"@", 9},  {"+", 8},  {"-", 8},  {"<<", 7},
    {">>", 7}, {"&", 6}, {"^", 5},  {"|", 4},  {"==", 3}, {"!=", 3}, {"<", 3},
    {"<=", 3}, {">", 3}, {">=", 3}, {"&&", 2}, {"||", 1},
};
static_assert(std::size(kOperators) == static_cast<std::size_t>(ast::BinaryOp::Or) + 1);

}  // namespace

std::string_view spelling(ast::BinaryOp op) {
  return kOperators[static_cast<std::size_t>(op)].text;
}

int precedence(ast::BinaryOp op) {
  return kOperators[static_cast<std::size_t>(op)].precedence;
}

std::string_view spelling(ast::UnaryOp op) {
  return op == ast::UnaryOp::Negate ? "-" : "!";
}

std::string_view spelling(ast::MethodKind kind) {
  constexpr std::string_view kNames[] = {"encode", "decode", "finish", "sync"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view spelling(ast::Aggregation aggregation) {
  constexpr std::string_view kNames[] = {"", "sum", "min", "max"};
  return kNames[static_cast<std::size_t>(aggregation)];
}

}  // namespace cinch::dsl
