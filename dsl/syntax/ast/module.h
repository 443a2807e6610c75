// The nodes and comments of one file.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dsl/source/source.h"
#include "dsl/syntax/ast/declarations.h"
#include "dsl/syntax/ast/expressions.h"
#include "dsl/syntax/ast/ids.h"
#include "dsl/syntax/ast/statements.h"
#include "dsl/syntax/ast/types.h"

namespace cinch::ast {

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
