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

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "dsl/source/source.h"

namespace cinch::ast {

using dsl::Span;

/// Levels of expressions, types and blocks inside one another, at most.
inline constexpr int kMaxDepth = 256;

/// A typed index into one vector of Module. The default is "none", for parts that may be left out.
template <class Tag>
struct Id {
  static constexpr std::uint32_t kNone = 0xffffffffu;
  std::uint32_t value = kNone;

  bool has_value() const { return value != kNone; }
  explicit operator bool() const { return has_value(); }
  friend bool operator==(Id, Id) = default;
  friend auto operator<=>(Id, Id) = default;
};

/// Elements [first, first + count) of the id pool of one id type; read it through Module::list.
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

/// A name as it stands in the text.
struct Name {
  std::string text;
  Span span;
};

// ---------------------------------------------------------------- expressions

enum class LiteralKind : std::uint8_t { Integer, Float, True, False, Inf, Nan, Pi };

/// `12` `0xff` (Integer: `integer` holds it), `0.5` `1e-8` (Float: `number` holds the nearest
/// double), and the words `true false inf nan pi`. `text` is the spelling: digits are exact there.
struct Literal {
  LiteralKind kind = LiteralKind::Integer;
  std::uint64_t integer = 0;
  double number = 0;
  std::string text;
};

/// A plain name: a local, parameter, constant, size, state, built-in (`n`, `world`, …), collective
/// operator
/// (`mean` in `allreduce(x, mean)`), compressor (in a composition) or operator.
struct NameRef {
  Name name;
};

/// `base.field`: a wire field (`w.index`), a member of a wrapped compressor (`inner.encode`, then
/// called), or a name of an imported file (`sparsify.topk`).
struct FieldRef {
  ExprId base;
  Name field;
};

/// One argument of a call: `e`, or `label: e` when label.text is not empty.
struct Arg {
  Span span;
  Name label;
  ExprId value;
};

/// `callee(args)`; the callee is a NameRef (`sum(x)`) or FieldRef (`inner.encode(x)`).
struct Call {
  ExprId callee;
  IdRange<ArgId> args;
};

/// `bitcast<type>(operand)`.
struct Bitcast {
  TypeId type;
  ExprId operand;
};

/// `base[i]`, `base[a..b]` (the index is a Range), `base[i, j]`.
struct Index {
  ExprId base;
  IdRange<ExprId> indices;
};

/// `a..b` (b left out) and `a..=b` (b taken in); stands in indices, where one end may be missing:
/// `a..` and `..b`. In `for` and `in` it becomes an Interval.
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

/// In order of precedence as language.md lists it, the tightest first.
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

/// All are left-associative. `op_span` is the operator's own place.
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

/// `|a, b| body`. Parameters have no types; ParamId would be too much for them.
struct Lambda {
  std::vector<Name> params;
  ExprId body;
};

/// `[a, b, c]`; elements may be arrays.
struct ArrayLiteral {
  IdRange<ExprId> elements;
};

/// `(a, b)`: several values of a fn.
struct Tuple {
  IdRange<ExprId> elements;
};

/// One field of a wire literal: `name: value`, or `name` alone, when `value` is a NameRef to the
/// same name and `is_shorthand` is set.
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

/// `if condition { … } else …`: `otherwise` is none, a BlockExpr (`else { … }`) or another If
/// (`else if`).
struct If {
  ExprId condition;
  BlockId then;
  ExprId otherwise;
};

/// `{ … }` where an operand is expected, and the block behind `else`.
struct BlockExpr {
  BlockId block;
};

/// `( inner )`: kept so that the formatter keeps it; its meaning is that of `inner`.
struct Paren {
  ExprId inner;
};

/// Stands where an expression had an error that was reported.
struct ErrorExpr {};

struct Expr {
  Span span;
  std::variant<ErrorExpr, Literal, NameRef, FieldRef, Call, Bitcast, Index, Range, Unary, Binary,
               Cast, Lambda, ArrayLiteral, Tuple, WireLiteral, If, BlockExpr, Paren>
      node;
};

/// The numbers that `in` allows or `for` runs through: `(a, b]`, `[a, b)`, … when `is_bracketed`,
/// else `a..b`, `a..=b`.
struct Interval {
  Span span;
  ExprId lo;
  ExprId hi;
  bool includes_lo = true;
  bool includes_hi = false;
  bool is_bracketed = false;
};

// ---------------------------------------------------------------- types

/// `f32`, `u7`, `bool`, or `int<bits>` / `uint<bits>`: then `width` is set. Names are not checked
/// here.
struct ScalarType {
  Name name;
  ExprId width;
};

/// `[element; d0]`, `[element; rows, cols]`; in the signature of a fn also `[element; ..]`, an
/// array of any sizes, which has no dims.
struct ArrayType {
  TypeId element;
  IdRange<ExprId> dims;
  bool is_any() const { return dims.is_empty(); }
};

/// `(f32, [f32; m])`: the result of a fn that gives several values.
struct TupleType {
  IdRange<TypeId> elements;
};

/// `{fast, exact}`: the words that a parameter takes.
struct EnumType {
  std::vector<Name> names;
};

/// `compressor`, the type of a wrapper's parameter.
struct CompressorType {};

struct Type {
  Span span;
  std::variant<ScalarType, ArrayType, TupleType, EnumType, CompressorType> node;
};

// ---------------------------------------------------------------- statements

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

/// `target = value` when `indices` is empty, else `target[indices] = value`; `target += value` and
/// its kin where `is_update`.
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

/// `assert condition, "message"`; `message` has its escapes resolved.
struct Assert {
  ExprId condition;
  std::string message;
  Span message_span;
};

/// An expression that is not the block's value: an `if` or a block.
struct ExprStmt {
  ExprId expr;
};

struct Stmt {
  Span span;
  std::variant<Let, LetTuple, Assign, For, While, Assert, ExprStmt> node;
};

/// `{ stmts… value }`; `value` may be none. The span has the braces.
struct Block {
  Span span;
  IdRange<StmtId> stmts;
  ExprId value;
};

// ---------------------------------------------------------------- declarations

/// `name: type`, of a fn or extern fn; of encode and sync, and without `type` of decode and finish;
/// of a compressor: `const name: type = initial in range`, where `initial`, `range` and `is_const`
/// may be missing.
struct Param {
  Span span;
  std::string doc;
  Name name;
  TypeId type;
  bool is_const = false;
  ExprId initial;
  IntervalId range;
};

/// `const NAME = value`, in a file and in a compressor.
struct Const {
  Name name;
  ExprId value;
};

/// `size k = value`.
struct SizeItem {
  Name name;
  ExprId value;
};

/// `set inner.ratio = value`: path holds `inner`, `ratio`.
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

/// `count m <= bound`: a number known only after encoding.
struct WireCount {
  Name name;
  ExprId bound;
};

/// How the fields of several payloads add up.
enum class Aggregation : std::uint8_t { None, Sum, Min, Max };

/// `field: type`, `field: type ascending below limit`, `field: type by sum`; `part: inner.wire`:
/// then `inner` is the name before the point and there is no type.
struct WireField {
  Name name;
  TypeId type;
  bool is_elias = false, is_ascending = false;
  ExprId below;  // of a packed field
  Name inner;
  Aggregation aggregation = Aggregation::None;
};

struct WireEntry {
  Span span;
  std::string doc;
  std::variant<WireCount, WireField> node;
};

/// `wire { entries }`, or `wire inner.wire`: then `inherited` is the name before the point and
/// entries are none.
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

/// `claims e, e…`: promises of the author, kept as written, such as `claims unbiased` or `claims
/// contraction(k / n)`.
struct Claims {
  IdRange<ExprId> claims;
};

struct Item {
  Span span;
  std::string doc;
  std::variant<Const, SizeItem, SetItem, StateItem, WireItem, Method, Claims> node;
};

/// `import std.sparsify` (path holds `std`, `sparsify`) or `import "mine.cinch"` (file holds the
/// text).
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

/// `compressor name(params) = value`: calls and names of compressors, fields of imported files.
struct Composition {
  Name name;
  IdRange<ParamId> params;
  ExprId value;
};

/// A declaration; `doc` is the text of the `///` lines before it, joined by newlines, without
/// slashes and the one blank behind them.
struct Decl {
  Span span;
  std::string doc;
  std::variant<Import, Const, Fn, ExternFn, Compressor, Composition> node;
};

enum class CommentKind : std::uint8_t { Line, Doc, Block };

/// A comment as it stands in the text, with its `//`, `///` or `/* */`; the span leaves out the
/// line end.
struct Comment {
  CommentKind kind = CommentKind::Line;
  Span span;
};

// ---------------------------------------------------------------- the module

/// The ids of one kind and the nodes they stand for.
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

/// One file's tree. `module[id]` is the node, `module.list(range)` the ids of a list.
struct Module {
  dsl::FileId file = dsl::kNoFile;
  /// Top-level declarations in source order.
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
