// The names of a file. Look-up follows the checker: locals from the innermost scope, names of the
// compressor, built-in names, the file, imports, operators.
#include "compiler/lsp/name_index.h"

#include <algorithm>
#include <map>
#include <variant>

#include "dsl/sema/builtins.h"
#include "dsl/sema/claims.h"

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

const ast::IdRange<ast::ParamId>* params_of(const ast::Decl& decl) {
  if (const auto* node = std::get_if<ast::Compressor>(&decl.node)) return &node->params;
  const auto* node = std::get_if<ast::Composition>(&decl.node);
  return node != nullptr ? &node->params : nullptr;
}

// Walks the tree of a file.
class NameWalker {
 public:
  NameWalker(const sema::FileUnit& unit, const sema::FileUnit& imports, NameIndex& out)
      : unit_(unit), imports_(imports), tree_(unit.tree), out_(out) {}

  void walk_file() {
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

 private:
  using Scope = std::map<std::string, std::size_t, std::less<>>;  // name: declaration

  // ---- declarations and the items of compressors

  void walk_decl(const ast::Decl& decl) {
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

  void walk_fn(const ast::IdRange<ast::ParamId>& params, ast::TypeId result, ast::BlockId body,
               Span scope) {
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
  void declare_generic_sizes(ast::TypeId id, Span scope) {
    if (!id) return;
    const auto* array = std::get_if<ast::ArrayType>(&tree_[id].node);
    if (array == nullptr) return;
    for (const ast::ExprId dim : tree_.list(array->dims)) {
      const auto* size = std::get_if<ast::NameRef>(&tree_[dim].node);
      if (size == nullptr || find_local(size->name.text) || find_in_files(size->name.text))
        continue;
      bring_in(declare(NameKind::GenericSize, size->name, tree_[id].span, scope));
    }
  }

  void walk_params(const ast::IdRange<ast::ParamId>& params, Span scope) {
    for (const ast::ParamId id : tree_.list(params)) {
      const ast::Param& param = tree_[id];
      const auto* words =
          param.type ? std::get_if<ast::EnumType>(&tree_[param.type].node) : nullptr;
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

  void declare_items(const ast::Compressor& node, Span scope) {
    for (const ast::ItemId id : tree_.list(node.items)) {
      const ast::Item& item = tree_[id];
      if (const auto* c = std::get_if<ast::Const>(&item.node)) {
        bring_in(declare(NameKind::Const, c->name, item.span, scope, item.doc));
      } else if (const auto* size = std::get_if<ast::SizeItem>(&item.node)) {
        bring_in(declare(NameKind::Size, size->name, item.span, scope, item.doc));
      } else if (const auto* state = std::get_if<ast::StateItem>(&item.node)) {
        bring_in(declare(NameKind::State, state->name, item.span, scope, item.doc));
      } else if (const auto* input = std::get_if<ast::InputItem>(&item.node)) {
        bring_in(declare(NameKind::Input, input->name, item.span, scope, item.doc));
      } else if (const auto* wire = std::get_if<ast::WireItem>(&item.node)) {
        declare_wire(*wire, item.span);
      }
    }
  }

  void declare_wire(const ast::WireItem& wire, Span scope) {
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

  void walk_item(const ast::Item& item) {
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
      } else if constexpr (std::is_same_v<Node, ast::InputItem>) {
        type(node.type);
        interval(node.range);
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

  void walk_wire(const ast::WireItem& wire) {
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
  void walk_method(const ast::Method& method, Span scope) {
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
  void walk_claim(ast::ExprId id) {
    if (!id) return;
    const ast::Expr& node = tree_[id];
    const auto* called = std::get_if<ast::Call>(&node.node);
    const ast::Expr& head = called != nullptr ? tree_[called->callee] : node;
    const auto* name = std::get_if<ast::NameRef>(&head.node);
    const bool is_claim = name != nullptr &&
                          std::ranges::any_of(sema::all_claims(), [&](const sema::ClaimInfo& info) {
                            return info.name == name->name.text;
                          });
    if (!is_claim) return expr(id);
    out_.words.push_back({name->name.span, WordKind::Claim});
    if (called == nullptr) return;
    for (const ast::ArgId arg : tree_.list(called->args)) expr(tree_[arg].value);
  }

  // ---- expressions

  void exprs(ast::IdRange<ast::ExprId> ids) {
    for (const ast::ExprId id : tree_.list(ids)) expr(id);
  }

  void expr(ast::ExprId id) {
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

  void call(const ast::Call& node) {
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
  void callee(const ast::Call& node, const ast::Name& name) {
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
  void labels(const ast::Call& node, const NamePlace& called) {
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

  // `sparsify.topk` of an import, `w.index` of the payload, `inner.ratio` of the wrapped
  // compressor.
  void field(const ast::FieldRef& node) {
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

  void wire_literal(const ast::WireLiteral& node) {
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

  void type(ast::TypeId id) {
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

  void interval(ast::IntervalId id) {
    if (!id) return;
    expr(tree_[id].lo);
    expr(tree_[id].hi);
  }

  void block(ast::BlockId id) {
    if (!id) return;
    const ast::Block& node = tree_[id];
    scopes_.emplace_back();
    for (const ast::StmtId stmt : tree_.list(node.stmts)) statement(stmt, node.span);
    expr(node.value);
    scopes_.pop_back();
  }

  void statement(ast::StmtId id, Span block_span) {
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

  // ---- names

  std::size_t declare(NameKind kind, const ast::Name& name, Span whole, Span scope,
                      std::string doc = "") {
    out_.declarations.push_back({kind, name, whole, scope, std::move(doc)});
    out_.uses.push_back({name.span, {&unit_, name.span}, false});
    return out_.declarations.size() - 1;
  }

  /// Makes the name visible from here on.
  void bring_in(std::size_t declaration) {
    scopes_.back().insert_or_assign(out_.declarations[declaration].name.text, declaration);
  }

  void use(const ast::Name& name) {
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

  void use_declared(Span span, const NamePlace& declared, bool is_shorthand = false) {
    out_.uses.push_back({span, declared, is_shorthand});
  }

  std::optional<std::size_t> find_local(std::string_view name) const {
    for (std::size_t i = scopes_.size(); i-- > 0;) {
      if (const auto at = scopes_[i].find(name); at != scopes_[i].end()) return at->second;
    }
    return std::nullopt;
  }

  std::optional<NamePlace> find_in_files(const std::string& name) const {
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

  const Declaration* local(std::string_view name) const {
    const auto found = find_local(name);
    return found ? &out_.declarations[*found] : nullptr;
  }

  const sema::FileUnit& unit_;
  const sema::FileUnit& imports_;
  const ast::Module& tree_;
  NameIndex& out_;
  std::vector<Scope> scopes_;  // local names, without names of the file
  Scope file_names_;
  Scope fields_, counts_;  // of the current compressor's wire
};

}  // namespace

NameIndex index_names(const sema::FileUnit& unit, const sema::FileUnit& imports) {
  NameIndex index;
  NameWalker(unit, imports, index).walk_file();
  return index;
}

}  // namespace cinch::lsp
