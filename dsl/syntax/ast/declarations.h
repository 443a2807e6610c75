// Nodes of declarations and of compressors' items.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "dsl/syntax/ast/ids.h"

namespace cinch::ast {

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
  std::variant<Const, SizeItem, SetItem, StateItem, WireItem, Method, Claims, Again> node;
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

}  // namespace cinch::ast
