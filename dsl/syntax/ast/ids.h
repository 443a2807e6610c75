// Typed ids of nodes, ranges of ids, and names with their places.
#pragma once

#include <cstdint>
#include <string>

#include "dsl/source/source.h"

namespace cinch::ast {

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

}  // namespace cinch::ast
