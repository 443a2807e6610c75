// Nodes of expressions, and the intervals that `in` and `for` take.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "dsl/syntax/ast/ids.h"

namespace cinch::ast {

enum class LiteralKind : std::uint8_t { Integer, Float, True, False, Inf, Nan, Pi };

/// `12` and `0xff` (Integer, in `integer`), `0.5` and `1e-8` (Float, the nearest double in
/// `number`), and the words `true false inf nan pi`. `text` is the spelling, with exact digits.
struct Literal {
  LiteralKind kind = LiteralKind::Integer;
  std::uint64_t integer = 0;
  double number = 0;
  std::string text;
};

/// A plain name: a local, parameter, constant, size, state, built-in name (`n`, `world`, …),
/// operator, collective's operator (`mean` in `allreduce(x, mean)`), or compressor (in a
/// composition).
struct NameRef {
  Name name;
};

/// `base.field`: a wire field (`w.index`), a member of a wrapped compressor (`inner.encode`, then
/// called), or a name of an imported file (`sparsify.topk`).
struct FieldRef {
  ExprId base;
  Name field;
};

/// One argument of a call: `e`, or `label: e` if label.text is not empty.
struct Arg {
  Span span;
  Name label;
  ExprId value;
};

/// `callee(args)`. The callee is a NameRef (`sum(x)`) or FieldRef (`inner.encode(x)`).
struct Call {
  ExprId callee;
  IdRange<ArgId> args;
};

/// `bitcast<type>(operand)`.
struct Bitcast {
  TypeId type;
  ExprId operand;
};

/// `base[i]`, `base[a..b]` (the index is a Range) or `base[i, j]`.
struct Index {
  ExprId base;
  IdRange<ExprId> indices;
};

/// `a..b` (without b) and `a..=b` (with b) as an index, where one end may be missing: `a..` and
/// `..b`. In `for` and `in` it becomes an Interval.
struct Range {
  ExprId lo;
  ExprId hi;
  bool is_inclusive = false;
};

enum class UnaryOp : std::uint8_t { Negate, Not };

struct Unary {
  UnaryOp op = UnaryOp::Negate;
  ExprId operand;
};

/// In order of precedence as in language.md, tightest first.
enum class BinaryOp : std::uint8_t {
  Mul,
  Div,
  Rem,
  MatMul,
  Add,
  Sub,
  Shl,
  Shr,
  BitAnd,
  BitXor,
  BitOr,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
};

/// All are left-associative. `op_span` is the place of the operator.
struct Binary {
  BinaryOp op = BinaryOp::Add;
  Span op_span;
  ExprId lhs;
  ExprId rhs;
};

/// `operand as type`.
struct Cast {
  ExprId operand;
  TypeId type;
};

/// `|a, b| body`. Parameters have no types, so they are plain names.
struct Lambda {
  std::vector<Name> params;
  ExprId body;
};

/// `[a, b, c]`. Elements may be arrays.
struct ArrayLiteral {
  IdRange<ExprId> elements;
};

/// `(a, b)`: several values of a fn.
struct Tuple {
  IdRange<ExprId> elements;
};

/// One field of a wire literal: `name: value`, or only `name`. Then `value` is a NameRef to the
/// same name, and `is_shorthand` is set.
struct FieldInit {
  Span span;
  Name name;
  ExprId value;
  bool is_shorthand = false;
};

/// `wire { index, value: g[index] }` as a value.
struct WireLiteral {
  IdRange<FieldInitId> fields;
};

/// `if condition { … } else …`. `otherwise` is none, a BlockExpr (`else { … }`) or another If
/// (`else if`).
struct If {
  ExprId condition;
  BlockId then;
  ExprId otherwise;
};

/// `{ … }` as an operand, and the block after `else`.
struct BlockExpr {
  BlockId block;
};

/// `( inner )` means `inner`. The node exists for the formatter, which keeps the parentheses.
struct Paren {
  ExprId inner;
};

/// The place of an expression whose error was reported.
struct ErrorExpr {};

struct Expr {
  Span span;
  std::variant<ErrorExpr, Literal, NameRef, FieldRef, Call, Bitcast, Index, Range, Unary, Binary,
               Cast, Lambda, ArrayLiteral, Tuple, WireLiteral, If, BlockExpr, Paren>
      node;
};

/// The numbers that `in` allows, or through which `for` runs: `(a, b]`, `[a, b)`, … if
/// `is_bracketed`, else `a..b` or `a..=b`.
struct Interval {
  Span span;
  ExprId lo;
  ExprId hi;
  bool includes_lo = true;
  bool includes_hi = false;
  bool is_bracketed = false;
};

}  // namespace cinch::ast
