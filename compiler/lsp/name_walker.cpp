// Names in expressions, statements and types. Look-up follows the checker: locals from the
// innermost scope, names of the compressor, built-in names, the file, imports, operators.
#include "compiler/lsp/name_index.h"

#include <algorithm>
#include <variant>

#include "dsl/sema/builtins.h"

namespace cinch::lsp {

static bool touches(Span span, std::uint32_t offset) {
  return span.begin <= offset && offset <= span.end;
}

const Declaration* NameIndex::find(Span name) const {
  const auto at =
      std::ranges::find(declarations, name, [](const Declaration& decl) { return decl.name.span; });
  return at == declarations.end() ? nullptr : &*at;
}

std::vector<NameUse> NameIndex::uses_at(std::uint32_t offset) const {
  std::vector<NameUse> found;
  std::ranges::copy_if(uses, std::back_inserter(found),
                       [&](const NameUse& use) { return touches(use.span, offset); });
  // If two uses meet, takes the later one. (A name before a point and the one after it never meet.)
  if (found.size() > 1 && found.front().span != found.back().span) {
    std::erase_if(found, [&](const NameUse& use) { return use.span.begin != offset; });
  }
  return found;
}

const WordUse* NameIndex::word_at(std::uint32_t offset) const {
  const auto at =
      std::ranges::find_if(words, [&](const WordUse& word) { return touches(word.span, offset); });
  return at == words.end() ? nullptr : &*at;
}

namespace {

const ast::IdRange<ast::ParamId>* params_of(const ast::Decl& decl) {
  if (const auto* node = std::get_if<ast::Compressor>(&decl.node)) return &node->params;
  const auto* node = std::get_if<ast::Composition>(&decl.node);
  return node != nullptr ? &node->params : nullptr;
}

}  // namespace

// ---- names

std::size_t NameWalker::declare(NameKind kind, const ast::Name& name, Span whole, Span scope,
                                std::string doc) {
  out_.declarations.push_back({kind, name, whole, scope, std::move(doc)});
  out_.uses.push_back({name.span, {&unit_, name.span}, false});
  return out_.declarations.size() - 1;
}

void NameWalker::bring_in(std::size_t declaration) {
  scopes_.back().insert_or_assign(out_.declarations[declaration].name.text, declaration);
}

std::optional<std::size_t> NameWalker::find_local(std::string_view name) const {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    if (const auto at = scopes_[i].find(name); at != scopes_[i].end()) return at->second;
  }
  return std::nullopt;
}

const Declaration* NameWalker::local(std::string_view name) const {
  const auto found = find_local(name);
  return found ? &out_.declarations[*found] : nullptr;
}

std::optional<NamePlace> NameWalker::find_in_files(const std::string& name) const {
  if (const auto own = file_names_.find(name); own != file_names_.end()) {
    return NamePlace{&unit_, out_.declarations[own->second].name.span};
  }
  for (const sema::ImportedFiles& import : imports_.imports) {
    for (const sema::FileUnit* file : import.files) {
      const auto at = file->names.find(name);
      if (at == file->names.end()) continue;
      return NamePlace{file, sema::declared_name(file->tree[at->second])->span};
    }
  }
  return std::nullopt;
}

void NameWalker::use_declared(Span span, const NamePlace& declared, bool is_shorthand) {
  out_.uses.push_back({span, declared, is_shorthand});
}

void NameWalker::use(const ast::Name& name) {
  if (const Declaration* decl = local(name.text)) {
    return use_declared(name.span, {&unit_, decl->name.span});
  }
  if (sema::is_builtin_name(name.text)) {
    out_.words.push_back({name.span, WordKind::BuiltinName});
  } else if (const auto found = find_in_files(name.text)) {
    use_declared(name.span, *found);
  } else if (sema::is_operator_name(name.text)) {
    out_.words.push_back({name.span, WordKind::Operator});  // `mean` of allreduce(x, mean)
  }
}

// ---- expressions

void NameWalker::exprs(ast::IdRange<ast::ExprId> ids) {
  for (const ast::ExprId id : tree_.list(ids)) expr(id);
}

void NameWalker::expr(ast::ExprId id) {
  if (!id) return;
  const ast::Expr& node = tree_[id];
  const auto visit = [&](const auto& e) {
    using Node = std::decay_t<decltype(e)>;
    if constexpr (std::is_same_v<Node, ast::NameRef>) {
      use(e.name);
    } else if constexpr (std::is_same_v<Node, ast::FieldRef>) {
      field(e);
    } else if constexpr (std::is_same_v<Node, ast::Call>) {
      call(e);
    } else if constexpr (std::is_same_v<Node, ast::Bitcast> || std::is_same_v<Node, ast::Cast>) {
      type(e.type);
      expr(e.operand);
    } else if constexpr (std::is_same_v<Node, ast::Index>) {
      expr(e.base);
      exprs(e.indices);
    } else if constexpr (std::is_same_v<Node, ast::Range>) {
      expr(e.lo);
      expr(e.hi);
    } else if constexpr (std::is_same_v<Node, ast::Unary>) {
      expr(e.operand);
    } else if constexpr (std::is_same_v<Node, ast::Binary>) {
      expr(e.lhs);
      expr(e.rhs);
    } else if constexpr (std::is_same_v<Node, ast::Lambda>) {
      scopes_.emplace_back();
      for (const ast::Name& param : e.params) {
        bring_in(declare(NameKind::LambdaParameter, param, param.span, node.span));
      }
      expr(e.body);
      scopes_.pop_back();
    } else if constexpr (std::is_same_v<Node, ast::ArrayLiteral> ||
                         std::is_same_v<Node, ast::Tuple>) {
      exprs(e.elements);
    } else if constexpr (std::is_same_v<Node, ast::WireLiteral>) {
      wire_literal(e);
    } else if constexpr (std::is_same_v<Node, ast::If>) {
      expr(e.condition);
      block(e.then);
      expr(e.otherwise);
    } else if constexpr (std::is_same_v<Node, ast::BlockExpr>) {
      block(e.block);
    } else if constexpr (std::is_same_v<Node, ast::Paren>) {
      expr(e.inner);
    }
  };
  std::visit(visit, node.node);
}

void NameWalker::call(const ast::Call& node) {
  const ast::Expr& called = tree_[node.callee];
  if (const auto* name = std::get_if<ast::NameRef>(&called.node)) {
    callee(node, name->name);
  } else {
    const std::size_t num_uses = out_.uses.size();
    expr(node.callee);
    if (out_.uses.size() > num_uses) labels(node, NamePlace(out_.uses.back().declared));
  }
  for (const ast::ArgId id : tree_.list(node.args)) expr(tree_[id].value);
}

// A fn of the file hides an operator with its name; an operator hides imported names.
void NameWalker::callee(const ast::Call& node, const ast::Name& name) {
  const auto own = file_names_.find(name.text);
  const bool is_own = own != file_names_.end();
  const NameKind kind = is_own ? out_.declarations[own->second].kind : NameKind::Const;
  const bool is_own_fn = kind == NameKind::Fn || kind == NameKind::ExternFn;
  if (sema::is_operator_name(name.text) && !is_own_fn) {
    out_.words.push_back({name.span, WordKind::Operator});
  } else if (const auto found = find_in_files(name.text)) {
    use_declared(name.span, *found);
    labels(node, *found);
  }
}

// `ratio` of `topk(ratio: 0.01)` is a parameter of topk.
void NameWalker::labels(const ast::Call& node, const NamePlace& called) {
  const ast::Module& tree = called.unit->tree;
  const ast::IdRange<ast::ParamId>* params = nullptr;
  for (const ast::DeclId id : tree.decls) {
    const ast::Name* name = sema::declared_name(tree[id]);
    if (name != nullptr && name->span == called.name) params = params_of(tree[id]);
  }
  if (params == nullptr) return;
  for (const ast::ArgId id : tree_.list(node.args)) {
    const ast::Name& label = tree_[id].label;
    if (label.text.empty()) continue;
    for (const ast::ParamId param : tree.list(*params)) {
      if (tree[param].name.text == label.text)
        use_declared(label.span, {called.unit, tree[param].name.span});
    }
  }
}

// `sparsify.topk` of an import, `w.index` of the payload, `inner.ratio` of the wrapped compressor.
void NameWalker::field(const ast::FieldRef& node) {
  const auto* base = std::get_if<ast::NameRef>(&tree_[node.base].node);
  if (base == nullptr) return expr(node.base);
  const Declaration* decl = local(base->name.text);
  if (decl == nullptr && sema::is_qualifier(imports_, base->name.text)) {
    if (const auto found = sema::find_qualified(imports_, base->name.text, node.field.text)) {
      use_declared(node.field.span, {found->unit, sema::declared_name(**found)->span});
    }
    return;
  }
  expr(node.base);
  if (decl == nullptr || decl->kind != NameKind::PayloadParameter) return;
  if (const auto at = fields_.find(node.field.text); at != fields_.end()) {
    use_declared(node.field.span, {&unit_, out_.declarations[at->second].name.span});
  }
}

void NameWalker::wire_literal(const ast::WireLiteral& node) {
  for (std::uint32_t i = 0; i < node.fields.count; ++i) {
    const ast::FieldInit& init = tree_[tree_.field_inits.pool[node.fields.first + i]];
    if (const auto at = fields_.find(init.name.text); at != fields_.end()) {
      use_declared(init.name.span, {&unit_, out_.declarations[at->second].name.span},
                   init.is_shorthand);
    }
    const std::size_t num_uses = out_.uses.size();
    expr(init.value);
    if (init.is_shorthand && out_.uses.size() > num_uses) out_.uses.back().is_shorthand = true;
  }
}

// ---- types and statements

void NameWalker::type(ast::TypeId id) {
  if (!id) return;
  const ast::Type& node = tree_[id];
  if (const auto* scalar = std::get_if<ast::ScalarType>(&node.node)) expr(scalar->width);
  if (const auto* array = std::get_if<ast::ArrayType>(&node.node)) {
    type(array->element);
    exprs(array->dims);
  }
  if (const auto* tuple = std::get_if<ast::TupleType>(&node.node)) {
    for (const ast::TypeId element : tree_.list(tuple->elements)) type(element);
  }
}

void NameWalker::interval(ast::IntervalId id) {
  if (!id) return;
  expr(tree_[id].lo);
  expr(tree_[id].hi);
}

void NameWalker::block(ast::BlockId id) {
  if (!id) return;
  const ast::Block& node = tree_[id];
  scopes_.emplace_back();
  for (const ast::StmtId stmt : tree_.list(node.stmts)) statement(stmt, node.span);
  expr(node.value);
  scopes_.pop_back();
}

void NameWalker::statement(ast::StmtId id, Span block_span) {
  const ast::Stmt& node = tree_[id];
  const Span rest{block_span.file, node.span.end, block_span.end};
  if (const auto* let = std::get_if<ast::Let>(&node.node)) {
    expr(let->value);
    const NameKind kind = let->is_mutable ? NameKind::MutableVariable : NameKind::Variable;
    bring_in(declare(kind, let->name, node.span, rest));
  } else if (const auto* lets = std::get_if<ast::LetTuple>(&node.node)) {
    expr(lets->value);
    for (const ast::Name& name : lets->names) {
      bring_in(declare(NameKind::Variable, name, node.span, rest));
    }
  } else if (const auto* assign = std::get_if<ast::Assign>(&node.node)) {
    use(assign->target);
    exprs(assign->indices);
    expr(assign->value);
  } else if (const auto* loop = std::get_if<ast::For>(&node.node)) {
    interval(loop->bounds);
    scopes_.emplace_back();
    bring_in(declare(NameKind::LoopVariable, loop->variable, loop->variable.span,
                     loop->body ? tree_[loop->body].span : node.span));
    block(loop->body);
    scopes_.pop_back();
  } else if (const auto* loop = std::get_if<ast::While>(&node.node)) {
    expr(loop->condition);
    expr(loop->limit);
    block(loop->body);
  } else if (const auto* check = std::get_if<ast::Assert>(&node.node)) {
    expr(check->condition);
  } else if (const auto* value = std::get_if<ast::ExprStmt>(&node.node)) {
    expr(value->expr);
  }
}

NameIndex index_names(const sema::FileUnit& unit, const sema::FileUnit& imports) {
  NameIndex index;
  NameWalker(unit, imports, index).walk_file();
  return index;
}

}  // namespace cinch::lsp
