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

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "dsl/source/source.h"

namespace cinch::ast {
// Typed ids of nodes, ranges of ids, and names with their places.

using dsl::Span;

/// The most nested levels of expressions, types and blocks.
inline constexpr int kMaxDepth = 256;

/// A typed index into one vector of Module. The default means "none", for optional parts.
template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = 0xffffffffu;
  std::uint32_t value = kNone;

  bool has_value() const { return value != kNone; }
  explicit operator bool() const { return has_value(); }
  friend bool operator==(Id, Id) = default;
  friend auto operator<=>(Id, Id) = default;
};

/// Elements [first, first + count) of the id pool of one id type. Read it through Module::list.
template <class IdType>
struct IdRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool is_empty() const { return count == 0; }
};

using ExprId = Id<struct ExprTag>;
using TypeId = Id<struct TypeTag>;
using StmtId = Id<struct StmtTag>;
using BlockId = Id<struct BlockTag>;
using IntervalId = Id<struct IntervalTag>;
using ArgId = Id<struct ArgTag>;
using ParamId = Id<struct ParamTag>;
using WireEntryId = Id<struct WireEntryTag>;
using FieldInitId = Id<struct FieldInitTag>;
using ItemId = Id<struct ItemTag>;
using DeclId = Id<struct DeclTag>;

/// A name in the text.
struct Name {
  std::string text;
  Span span;
};

// Nodes of types.

/// `f32`, `u7`, `bool`, or `int<bits>` / `uint<bits>` with `width`. The checker checks the names.
struct ScalarType {
  Name name;
  ExprId width;
};

/// `[element; d0]` or `[element; rows, cols]`. In the signature of a fn also `[element; ..]`, an
/// array of any sizes, without dims.
struct ArrayType {
  TypeId element;
  IdRange<ExprId> dims;
  bool is_any() const { return dims.is_empty(); }
};

/// `(f32, [f32; m])`: the result of a fn with several results.
struct TupleType {
  IdRange<TypeId> elements;
};

/// `{fast, exact}`: the words of a parameter.
struct EnumType {
  std::vector<Name> names;
};

/// `compressor`, the type of a wrapper's parameter.
struct CompressorType {};

struct Type {
  Span span;
  std::variant<ScalarType, ArrayType, TupleType, EnumType, CompressorType> node;
};

// Nodes of expressions, and the intervals that `in` and `for` take.

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

// Nodes of statements and blocks.

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

// Nodes of declarations and of compressors' items.

/// `name: type` in a fn, extern fn, encode or sync; also without `type` in decode and finish. In a
/// compressor: `const name: type = initial in range`, where `const`, `initial` and `range` are
/// optional.
struct Param {
  Span span;
  std::string doc;
  Name name;
  TypeId type;
  bool is_const = false;
  ExprId initial;
  IntervalId range;
};

/// `const NAME = value` in a file or a compressor.
struct Const {
  Name name;
  ExprId value;
};

/// `size k = value`.
struct SizeItem {
  Name name;
  ExprId value;
};

/// `set inner.ratio = value`: `path` holds `inner` and `ratio`.
struct SetItem {
  std::vector<Name> path;
  ExprId value;
};

/// `state s: type = initial`.
struct StateItem {
  Name name;
  TypeId type;
  ExprId initial;
};

/// `input lr: f32 in (0, inf)`, `input weights: [f32; n]`: a value that comes with each call.
struct InputItem {
  Name name;
  TypeId type;
  IntervalId range;
};

/// `count m <= bound`: a number that is known only after encoding.
struct WireCount {
  Name name;
  ExprId bound;
};

/// How the fields of several payloads add up.
enum class Aggregation : std::uint8_t { None, Sum, Min, Max };

/// `field: type`, `field: type ascending below limit`, or `field: type by sum`. For `part:
/// inner.wire`, `inner` is the name before the point, and there is no type.
struct WireField {
  Name name;
  TypeId type;
  bool is_elias = false, is_ascending = false;
  ExprId below;  // for a packed field
  Name inner;
  Aggregation aggregation = Aggregation::None;
};

struct WireEntry {
  Span span;
  std::string doc;
  std::variant<WireCount, WireField> node;
};

/// `wire { entries }`, or `wire inner.wire`: then `inherited` is the name before the point, and
/// there are no entries.
struct WireItem {
  IdRange<WireEntryId> entries;
  Name inherited;
  bool is_inherited() const { return !inherited.text.empty(); }
};

enum class MethodKind : std::uint8_t { Encode, Decode, Finish, Sync };

/// `encode(g: [f32; n]) { … }`, `decode(w) { … }`, `finish(sum) { … }`, `sync(g: [f32; r, c]) { …
/// }`.
struct Method {
  MethodKind kind = MethodKind::Encode;
  Span keyword_span;
  IdRange<ParamId> params;
  BlockId body;
};

/// `claims e, e…`: the author's promises as written, such as `claims unbiased` or `claims
/// contraction(k / n)`.
struct Claims {
  IdRange<ExprId> claims;
};

/// `again inner`, `again shared randomk(ratio: ratio)`, `again exact`: the compressor that carries
/// sums in place of this one. It is written like the value of a composition.
struct Again {
  bool is_shared = false;  // it draws what ranks drew for their own gradients
  ExprId carrier;
};

struct Item {
  Span span;
  std::string doc;
  std::variant<Const, SizeItem, SetItem, StateItem, InputItem, WireItem, Method, Claims, Again>
      node;
};

/// `import std.sparsify` (`path` holds `std` and `sparsify`) or `import "mine.cinch"` (`file` holds
/// the text).
struct Import {
  std::vector<Name> path;
  std::string file;
  bool is_file() const { return path.empty(); }
};

/// `fn name(params) -> result { … }`.
struct Fn {
  Name name;
  IdRange<ParamId> params;
  TypeId result;
  BlockId body;
};

/// `extern fn name(params) -> result from "header"`.
struct ExternFn {
  Name name;
  IdRange<ParamId> params;
  TypeId result;
  std::string header;
  Span header_span;
};

/// `compressor name(params) { items }`.
struct Compressor {
  Name name;
  IdRange<ParamId> params;
  IdRange<ItemId> items;
};

/// `compressor name(params) = value`. The value consists of calls and names of compressors, and
/// fields of imported files.
struct Composition {
  Name name;
  IdRange<ParamId> params;
  ExprId value;
};

/// A declaration. `doc` is the text of the `///` lines before it, joined by newlines, without the
/// slashes and one blank after them.
struct Decl {
  Span span;
  std::string doc;
  std::variant<Import, Const, Fn, ExternFn, Compressor, Composition> node;
};

// The nodes and comments of one file.

enum class CommentKind : std::uint8_t { Line, Doc, Block };

/// A comment in the text with its `//`, `///` or `/* */`. The span is without the line end.
struct Comment {
  CommentKind kind = CommentKind::Line;
  Span span;
};

/// The nodes of one kind, by id.
template <class IdType, class Node>
struct Store {
  std::vector<Node> nodes;
  std::vector<IdType> pool;

  IdType add(Node node) {
    nodes.push_back(std::move(node));
    return IdType{static_cast<std::uint32_t>(nodes.size() - 1)};
  }
  IdRange<IdType> add_list(std::span<const IdType> ids) {
    const IdRange<IdType> range{static_cast<std::uint32_t>(pool.size()),
                                static_cast<std::uint32_t>(ids.size())};
    pool.insert(pool.end(), ids.begin(), ids.end());
    return range;
  }
};

/// One file's tree. `module[id]` is a node, and `module.list(range)` the ids of a list.
struct Module {
  dsl::FileId file = dsl::kNoFile;
  /// Declarations of the file in source order.
  std::vector<DeclId> decls;
  /// All comments in source order.
  std::vector<Comment> comments;

  Store<ExprId, Expr> exprs;
  Store<TypeId, Type> types;
  Store<StmtId, Stmt> stmts;
  Store<BlockId, Block> blocks;
  Store<IntervalId, Interval> intervals;
  Store<ArgId, Arg> args;
  Store<ParamId, Param> params;
  Store<WireEntryId, WireEntry> wire_entries;
  Store<FieldInitId, FieldInit> field_inits;
  Store<ItemId, Item> items;
  Store<DeclId, Decl> all_decls;

  const Expr& operator[](ExprId id) const { return exprs.nodes[id.value]; }
  const Type& operator[](TypeId id) const { return types.nodes[id.value]; }
  const Stmt& operator[](StmtId id) const { return stmts.nodes[id.value]; }
  const Block& operator[](BlockId id) const { return blocks.nodes[id.value]; }
  const Interval& operator[](IntervalId id) const { return intervals.nodes[id.value]; }
  const Arg& operator[](ArgId id) const { return args.nodes[id.value]; }
  const Param& operator[](ParamId id) const { return params.nodes[id.value]; }
  const WireEntry& operator[](WireEntryId id) const { return wire_entries.nodes[id.value]; }
  const FieldInit& operator[](FieldInitId id) const { return field_inits.nodes[id.value]; }
  const Item& operator[](ItemId id) const { return items.nodes[id.value]; }
  const Decl& operator[](DeclId id) const { return all_decls.nodes[id.value]; }

  std::span<const ExprId> list(IdRange<ExprId> range) const { return slice(exprs.pool, range); }
  std::span<const StmtId> list(IdRange<StmtId> range) const { return slice(stmts.pool, range); }
  std::span<const TypeId> list(IdRange<TypeId> range) const { return slice(types.pool, range); }
  std::span<const ArgId> list(IdRange<ArgId> range) const { return slice(args.pool, range); }
  std::span<const ParamId> list(IdRange<ParamId> range) const { return slice(params.pool, range); }
  std::span<const WireEntryId> list(IdRange<WireEntryId> range) const {
    return slice(wire_entries.pool, range);
  }
  std::span<const FieldInitId> list(IdRange<FieldInitId> range) const {
    return slice(field_inits.pool, range);
  }
  std::span<const ItemId> list(IdRange<ItemId> range) const { return slice(items.pool, range); }

 private:
  template <class IdType>
  static std::span<const IdType> slice(const std::vector<IdType>& pool, IdRange<IdType> range) {
    return std::span<const IdType>(pool).subspan(range.first, range.count);
  }
};

}  // namespace cinch::ast

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
