// Nodes of declarations, and of the items of compressors.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "dsl/syntax/ast/ids.h"

namespace cinch::ast {

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

}  // namespace cinch::ast
