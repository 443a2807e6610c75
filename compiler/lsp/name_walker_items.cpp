// Names of a file's declarations and of a compressor's items; see name_index.h.
#include <algorithm>
#include <variant>

#include "compiler/lsp/name_index.h"
#include "dsl/sema/claims.h"

namespace cinch::lsp {

namespace {

NameKind kind_of(const ast::Decl& decl) {
  if (std::holds_alternative<ast::Const>(decl.node)) return NameKind::Const;
  if (std::holds_alternative<ast::Fn>(decl.node)) return NameKind::Fn;
  if (std::holds_alternative<ast::ExternFn>(decl.node)) return NameKind::ExternFn;
  return NameKind::Compressor;
}

// From the first character of a declaration to where its body begins.
Span signature(const sema::FileUnit& unit, const ast::Decl& decl) {
  const ast::Module& tree = unit.tree;
  Span span = decl.span;
  if (const auto* fn = std::get_if<ast::Fn>(&decl.node); fn != nullptr && fn->result) {
    span.end = tree[fn->result].span.end;
  }
  if (const auto* node = std::get_if<ast::Compressor>(&decl.node)) {
    span.end = node->name.span.end;
    for (const ast::ParamId id : tree.list(node->params)) span.end = tree[id].span.end;
    if (node->params.count > 0) {
      const std::size_t bracket = unit.source->text().find(')', span.end);
      if (bracket < decl.span.end) span.end = static_cast<std::uint32_t>(bracket + 1);
    }
  }
  return span;
}

}  // namespace

void NameWalker::walk_file() {
  for (const ast::DeclId id : tree_.decls) {
    const ast::Decl& decl = tree_[id];
    const ast::Name* name = sema::declared_name(decl);
    if (name == nullptr) continue;
    const Span whole_file = unit_.source->whole();
    const auto at = declare(kind_of(decl), *name, signature(unit_, decl), whole_file, decl.doc);
    file_names_.try_emplace(name->text, at);
  }
  for (const ast::DeclId id : tree_.decls) walk_decl(tree_[id]);
}

void NameWalker::walk_decl(const ast::Decl& decl) {
  if (const auto* node = std::get_if<ast::Const>(&decl.node)) {
    expr(node->value);
  } else if (const auto* fn = std::get_if<ast::Fn>(&decl.node)) {
    walk_fn(fn->params, fn->result, fn->body, decl.span);
  } else if (const auto* fn = std::get_if<ast::ExternFn>(&decl.node)) {
    walk_fn(fn->params, fn->result, {}, decl.span);
  } else if (const auto* node = std::get_if<ast::Compressor>(&decl.node)) {
    scopes_.emplace_back();
    fields_.clear();
    counts_.clear();
    walk_params(node->params, decl.span);
    declare_items(*node, decl.span);
    for (const ast::ItemId id : tree_.list(node->items)) walk_item(tree_[id]);
    scopes_.pop_back();
  } else if (const auto* node = std::get_if<ast::Composition>(&decl.node)) {
    scopes_.emplace_back();
    walk_params(node->params, decl.span);
    expr(node->value);
    scopes_.pop_back();
  }
}

// ---- fns

void NameWalker::walk_fn(const ast::IdRange<ast::ParamId>& params, ast::TypeId result,
                         ast::BlockId body, Span scope) {
  scopes_.emplace_back();
  for (const ast::ParamId id : tree_.list(params)) declare_generic_sizes(tree_[id].type, scope);
  for (const ast::ParamId id : tree_.list(params)) {
    const ast::Param& param = tree_[id];
    type(param.type);
    bring_in(declare(NameKind::FnParameter, param.name, param.span, scope, param.doc));
  }
  type(result);
  block(body);
  scopes_.pop_back();
}

// In a signature, the name of a constant is the constant; any other size name declares that size.
void NameWalker::declare_generic_sizes(ast::TypeId id, Span scope) {
  if (!id) return;
  const auto* array = std::get_if<ast::ArrayType>(&tree_[id].node);
  if (array == nullptr) return;
  for (const ast::ExprId dim : tree_.list(array->dims)) {
    const auto* size = std::get_if<ast::NameRef>(&tree_[dim].node);
    if (size == nullptr || find_local(size->name.text) || find_in_files(size->name.text)) continue;
    bring_in(declare(NameKind::GenericSize, size->name, tree_[id].span, scope));
  }
}

// ---- compressors

void NameWalker::walk_params(const ast::IdRange<ast::ParamId>& params, Span scope) {
  for (const ast::ParamId id : tree_.list(params)) {
    const ast::Param& param = tree_[id];
    const auto* words = param.type ? std::get_if<ast::EnumType>(&tree_[param.type].node) : nullptr;
    for (std::size_t i = 0; words != nullptr && i < words->names.size(); ++i) {
      const ast::Name& word = words->names[i];
      const std::size_t declared = declare(NameKind::Word, word, param.span, scope, param.doc);
      // Several parameters may take one word: it leads to the first.
      if (!find_local(word.text)) bring_in(declared);
    }
    type(param.type);
    expr(param.initial);
    interval(param.range);
    const bool is_inner =
        param.type && std::holds_alternative<ast::CompressorType>(tree_[param.type].node);
    bring_in(declare(is_inner ? NameKind::InnerCompressor : NameKind::Parameter, param.name,
                     param.span, scope, param.doc));
  }
}

void NameWalker::declare_items(const ast::Compressor& node, Span scope) {
  for (const ast::ItemId id : tree_.list(node.items)) {
    const ast::Item& item = tree_[id];
    if (const auto* c = std::get_if<ast::Const>(&item.node)) {
      bring_in(declare(NameKind::Const, c->name, item.span, scope, item.doc));
    } else if (const auto* size = std::get_if<ast::SizeItem>(&item.node)) {
      bring_in(declare(NameKind::Size, size->name, item.span, scope, item.doc));
    } else if (const auto* state = std::get_if<ast::StateItem>(&item.node)) {
      bring_in(declare(NameKind::State, state->name, item.span, scope, item.doc));
    } else if (const auto* wire = std::get_if<ast::WireItem>(&item.node)) {
      declare_wire(*wire, item.span);
    }
  }
}

void NameWalker::declare_wire(const ast::WireItem& wire, Span scope) {
  for (std::uint32_t i = 0; i < wire.entries.count; ++i) {
    const ast::WireEntry& entry = tree_[tree_.wire_entries.pool[wire.entries.first + i]];
    if (const auto* count = std::get_if<ast::WireCount>(&entry.node)) {
      counts_.try_emplace(count->name.text,
                          declare(NameKind::Count, count->name, entry.span, scope, entry.doc));
    } else if (const auto* field = std::get_if<ast::WireField>(&entry.node)) {
      fields_.try_emplace(field->name.text,
                          declare(NameKind::Field, field->name, entry.span, scope, entry.doc));
    }
  }
}

void NameWalker::walk_item(const ast::Item& item) {
  const auto visit = [&](const auto& node) {
    using Node = std::decay_t<decltype(node)>;
    if constexpr (std::is_same_v<Node, ast::Const> || std::is_same_v<Node, ast::SizeItem>) {
      expr(node.value);
    } else if constexpr (std::is_same_v<Node, ast::SetItem>) {
      use(node.path.front());
      expr(node.value);
    } else if constexpr (std::is_same_v<Node, ast::StateItem>) {
      type(node.type);
      expr(node.initial);
    } else if constexpr (std::is_same_v<Node, ast::WireItem>) {
      walk_wire(node);
    } else if constexpr (std::is_same_v<Node, ast::Method>) {
      walk_method(node, item.span);
    } else if constexpr (std::is_same_v<Node, ast::Claims>) {
      for (const ast::ExprId claim : tree_.list(node.claims)) walk_claim(claim);
    } else if constexpr (std::is_same_v<Node, ast::Again>) {
      // `exact` is no name there.
      const auto* name =
          node.carrier ? std::get_if<ast::NameRef>(&tree_[node.carrier].node) : nullptr;
      if (name == nullptr || name->name.text != "exact") expr(node.carrier);
    }
  };
  std::visit(visit, item.node);
}

void NameWalker::walk_wire(const ast::WireItem& wire) {
  if (wire.is_inherited()) return use(wire.inherited);
  scopes_.push_back(counts_);
  for (std::uint32_t i = 0; i < wire.entries.count; ++i) {
    const ast::WireEntry& entry = tree_[tree_.wire_entries.pool[wire.entries.first + i]];
    if (const auto* count = std::get_if<ast::WireCount>(&entry.node)) expr(count->bound);
    const auto* field = std::get_if<ast::WireField>(&entry.node);
    if (field == nullptr) continue;
    if (!field->inner.text.empty()) use(field->inner);
    type(field->type);
    expr(field->below);
  }
  scopes_.pop_back();
}

// The counts of a payload are visible where it is decoded.
void NameWalker::walk_method(const ast::Method& method, Span scope) {
  const bool is_decode = method.kind == ast::MethodKind::Decode;
  scopes_.push_back(is_decode ? counts_ : Scope());
  for (const ast::ParamId id : tree_.list(method.params)) {
    const ast::Param& param = tree_[id];
    type(param.type);
    const NameKind kind = is_decode ? NameKind::PayloadParameter : NameKind::MethodParameter;
    bring_in(declare(kind, param.name, param.span, scope));
  }
  block(method.body);
  scopes_.pop_back();
}

// `unbiased`, `contraction(k / n)`, `conserves(residual)`, `inner.unbiased`.
void NameWalker::walk_claim(ast::ExprId id) {
  if (!id) return;
  const ast::Expr& node = tree_[id];
  const auto* called = std::get_if<ast::Call>(&node.node);
  const ast::Expr& head = called != nullptr ? tree_[called->callee] : node;
  const auto* name = std::get_if<ast::NameRef>(&head.node);
  const bool is_claim =
      name != nullptr && std::ranges::any_of(sema::all_claims(), [&](const sema::ClaimInfo& info) {
        return info.name == name->name.text;
      });
  if (!is_claim) return expr(id);
  out_.words.push_back({name->name.span, WordKind::Claim});
  if (called == nullptr) return;
  for (const ast::ArgId arg : tree_.list(called->args)) expr(tree_[arg].value);
}

}  // namespace cinch::lsp
