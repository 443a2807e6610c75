// Compressors: instances of a composition, their items, and elaboration as a whole.
#include <algorithm>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

const char* keyword_of(ast::MethodKind kind) {
  constexpr const char* kWords[] = {"encode", "decode", "finish", "sync"};
  return kWords[static_cast<std::size_t>(kind)];
}

bool takes_matrix(const Spec& spec) {
  const ast::Module& tree = spec.decl.unit->tree;
  for (ast::ItemId id : tree.list(spec.node->items)) {
    const auto* method = std::get_if<ast::Method>(&tree[id].node);
    if (method == nullptr || method->params.is_empty()) continue;
    const ast::Param& param = tree[tree.params.pool[method->params.first]];
    if (!param.type.has_value()) continue;
    const auto* array = std::get_if<ast::ArrayType>(&tree[param.type].node);
    if (array != nullptr && array->dims.count == 2) return true;
  }
  return std::any_of(spec.inner.begin(), spec.inner.end(), [](const auto& entry) {
    return entry.second != nullptr && takes_matrix(*entry.second);
  });
}

}  // namespace

bool Elaborator::run(Spec& spec, const ast::Name& name, const std::vector<Binding>& bindings,
                     bool is_check) {
  const std::size_t errors = reporter_.num_errors();
  const Use use(*this, spec.node->name.span);
  is_check_ = is_check;
  out_.info.name = name.text;
  out_.info.source = spec.decl.unit->source->name();
  out_.name_span = spec.node->name.span;
  for (const OpenParam& open : open_params(spec)) {
    open_names_.push_back({open.param, {open.spec, open.name}});
  }
  check_bindings(bindings, name.span);
  out_.info.is_matrix = takes_matrix(spec);
  sizes_.set_matrix(out_.info.is_matrix);
  Instance* root = add_instance(spec, "");
  elaborate_items(*root);
  out_.claims = root->claims;
  if (reporter_.num_errors() == errors) elaborate_bodies(*root);
  return reporter_.num_errors() == errors;
}

Instance* Elaborator::add_instance(Spec& spec, const std::string& prefix) {
  instances_.push_back(std::make_unique<Instance>());
  Instance& instance = *instances_.back();
  instance.spec = &spec;
  instance.prefix = prefix;
  instance.number = static_cast<std::uint32_t>(instances_.size() - 1);
  instance.elements = pool().n();
  Environment env{&instance.unit(), &instance, {Scope{}}};
  env.draw_instance = &instance;
  collect_items(instance);
  with_environment(env, [&] { bind_params(instance); });
  for (auto& [slot, inner] : spec.inner) {
    Instance* made = add_instance(*inner, prefix + slot + ".");
    instance.inner[slot] = made;
    Symbol symbol;
    symbol.kind = SymbolKind::Inner;
    symbol.inner = made;
    symbol.span = spec.node->name.span;
    instance.names.insert_or_assign(slot, std::move(symbol));
    if (made->method(ast::MethodKind::Sync) != nullptr) {
      reporter_.report<DiagKind::NoProtocol>(spec.node->name.span, made->name());
    }
  }
  with_environment(env, [&] {
    find_shape(instance);
    check_items(instance);
  });
  return &instance;
}

void Elaborator::add_method(Instance& instance, const ast::Method& method) {
  const auto slot = static_cast<std::size_t>(method.kind);
  if (instance.methods[slot] != nullptr) {
    reporter_.report<DiagKind::DuplicateName>(method.keyword_span, keyword_of(method.kind))
        .note(instance.method_spans[slot], "first here");
    return;
  }
  instance.methods[slot] = &method;
  instance.method_spans[slot] = method.keyword_span;
  const bool is_single = method.params.count == 1;
  const bool wants_type =
      method.kind == ast::MethodKind::Encode || method.kind == ast::MethodKind::Sync;
  const char* wanted = wants_type                               ? "one gradient: `(g: [f32; n])`"
                       : method.kind == ast::MethodKind::Decode ? "one payload: `(w)`"
                                                                : "one sum: `(sum)`";
  const ast::Module& tree = instance.tree();
  bool has_type = false;
  if (is_single) has_type = tree[tree.params.pool[method.params.first]].type.has_value();
  if (!is_single || has_type != wants_type) {
    reporter_.report<DiagKind::BadMethodParameters>(method.keyword_span, keyword_of(method.kind),
                                                    wanted);
  } else {
    const ast::Name& name = tree[tree.params.pool[method.params.first]].name;
    if (is_reserved_name(name.text)) {
      reporter_.report<DiagKind::BuiltinNameTaken>(name.span, name.text);
    }
  }
}

void Elaborator::collect_items(Instance& instance) {
  for (ast::ItemId id : instance.tree().list(instance.spec->node->items)) {
    const ast::Item& item = instance.tree()[id];
    if (const auto* method = std::get_if<ast::Method>(&item.node)) {
      add_method(instance, *method);
    } else if (const auto* wire = std::get_if<ast::WireItem>(&item.node)) {
      if (instance.wire_item != nullptr) {
        reporter_.report<DiagKind::DuplicateName>(item.span, "wire");
      }
      instance.wire_item = wire;
    }
  }
}

// What encode or sync takes; a wrapper without them takes what it wraps.
void Elaborator::find_shape(Instance& instance) {
  const ast::Method* method = instance.method(ast::MethodKind::Sync);
  if (method == nullptr) method = instance.method(ast::MethodKind::Encode);
  if (method == nullptr || method->params.count != 1) {
    if (Instance* inner = instance.only_inner()) {
      instance.is_matrix = inner->is_matrix;
      instance.gradient_span = inner->gradient_span;
    }
    return;
  }
  const ast::Module& tree = instance.tree();
  const ast::Param& param = tree[tree.params.pool[method->params.first]];
  instance.gradient_span = param.span;
  if (!param.type.has_value()) return;
  const auto* array = std::get_if<ast::ArrayType>(&tree[param.type].node);
  std::vector<std::string> dims;
  bool is_f32 = false;
  if (array != nullptr) {
    const auto* element = std::get_if<ast::ScalarType>(&tree[array->element].node);
    is_f32 = element != nullptr && element->name.text == "f32";
    for (ast::ExprId dim : tree.list(array->dims)) {
      const auto* name = std::get_if<ast::NameRef>(&tree[dim].node);
      dims.push_back(name == nullptr ? "" : name->name.text);
    }
  }
  instance.is_matrix = dims == std::vector<std::string>{"r", "c"};
  if (is_f32 && (instance.is_matrix || dims == std::vector<std::string>{"n"})) {
    const HostExprId n = pool().n();
    size_names_.try_emplace(n, "n", instance.gradient_span);
    size_names_.try_emplace(pool().rows(), "r", instance.gradient_span);
    size_names_.try_emplace(pool().cols(), "c", instance.gradient_span);
    return;
  }
  reporter_.report<DiagKind::BadGradientType>(
      tree[param.type].span, std::string(instance.unit().source->text(tree[param.type].span)));
}

void Elaborator::check_items(Instance& instance) {
  const ast::Name& name = instance.spec->node->name;
  const bool is_wrapper = !instance.inner.empty();
  if (instance.method(ast::MethodKind::Sync) != nullptr) {
    for (ast::MethodKind kind :
         {ast::MethodKind::Encode, ast::MethodKind::Decode, ast::MethodKind::Finish}) {
      if (instance.method(kind) == nullptr) continue;
      reporter_.report<DiagKind::ItemNotAllowed>(
          instance.method_spans[static_cast<std::size_t>(kind)], keyword_of(kind), "sync");
    }
    if (instance.wire_item != nullptr) {
      reporter_.report<DiagKind::ItemNotAllowed>(name.span, "wire", "sync");
    }
    return;
  }
  const bool inherits_wire =
      is_wrapper && (instance.wire_item == nullptr || instance.wire_item->is_inherited());
  if (instance.wire_item == nullptr && !is_wrapper) {
    reporter_.report<DiagKind::MissingItem>(name.span, name.text, "wire");
  }
  for (ast::MethodKind kind : {ast::MethodKind::Encode, ast::MethodKind::Decode}) {
    if (instance.method(kind) != nullptr || inherits_wire) continue;
    reporter_.report<DiagKind::MissingItem>(name.span, name.text, keyword_of(kind));
  }
}

bool Elaborator::is_taken(std::string_view name, const Instance* instance) {
  const bool is_dimension = name == "r" || name == "c";
  return is_reserved_name(name) || (is_dimension && instance != nullptr && instance->is_matrix);
}

void Elaborator::declare_item(Instance& instance, const ast::Name& name, Symbol symbol) {
  if (is_taken(name.text, &instance)) {
    reporter_.report<DiagKind::BuiltinNameTaken>(name.span, name.text);
    return;
  }
  record_type(name.span, symbol);
  const auto [at, is_new] = instance.names.try_emplace(name.text, symbol);
  if (is_new) return;
  reporter_.report<DiagKind::DuplicateName>(name.span, name.text)
      .note(at->second.span, "first declared here");
}

// Sizes first, as what is wrapped is told by `set` may be made of them; then what is wrapped, since
// a wire may be its wire.
void Elaborator::elaborate_items(Instance& instance) {
  const auto each = [&](auto&& handle) {
    for (ast::ItemId id : tree().list(instance.spec->node->items)) handle(tree()[id]);
  };
  Environment env = environment_of(instance);
  with_environment(env, [&] {
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::Const>(&item.node)) elaborate_const(instance, *node);
      if (const auto* node = std::get_if<ast::SizeItem>(&item.node)) {
        elaborate_size(instance, *node);
      }
    });
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::SetItem>(&item.node)) elaborate_set(instance, *node);
    });
    check_set_elements(instance);
  });
  for (const auto& [slot, inner] : instance.inner) {
    if (!inner->has_set_elements) inner->elements = instance.elements;
    if (!inner->rows) {
      inner->rows = instance.rows;
      inner->rows_span = instance.rows_span;
    }
    elaborate_items(*inner);
  }
  with_environment(env, [&] {
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::StateItem>(&item.node)) {
        elaborate_state(instance, *node);
      }
    });
    elaborate_wire(instance);
    each([&](const ast::Item& item) {
      const auto* node = std::get_if<ast::Claims>(&item.node);
      if (node != nullptr) elaborate_claims(instance, *node);
    });
  });
}

void Elaborator::elaborate_const(Instance& instance, const ast::Const& node) {
  Symbol symbol;
  symbol.span = node.name.span;
  symbol.noun = "a constant";
  in_constant_ = true;
  symbol.value = in_block(tree()[node.value].span, [&] { return expr(node.value); });
  in_constant_ = false;
  const Value& value = symbol.value;
  if (value.is_host() && pool().is_const(value.host) && !value.is_big) {
    const double shown = pool().const_value(value.host).to_double();
    out_.info.constants.push_back({instance.prefix + node.name.text, shown});
  }
  declare_item(instance, node.name, std::move(symbol));
}

void Elaborator::elaborate_size(Instance& instance, const ast::SizeItem& node) {
  Symbol symbol;
  symbol.span = node.name.span;
  symbol.noun = "a size";
  if (const auto size = host_size(node.value, "a size")) {
    sizes_.canonical(*size);  // later proofs begin from here
    symbol.value = host(*size, node.name.span);
    const bool is_plain = pool().is_const(*size) || host_op_num_args(pool().node(*size).op) == 0;
    if (!is_plain) {
      size_names_.try_emplace(*size, instance.prefix + node.name.text, node.name.span);
    }
    out_.info.sizes.push_back({instance.prefix + node.name.text, *size});
  }
  declare_item(instance, node.name, std::move(symbol));
}

void Elaborator::check_state_size(const ast::StateItem& node, const Type& type) {
  for (int i = 0; i < type.rank; ++i) {
    const bool on_param = pool().depends_on(type.dims[i], HostOp::Param);
    if (!on_param && !pool().depends_on(type.dims[i], HostOp::Step)) continue;
    reporter_.report<DiagKind::StateSize>(tree()[node.type].span, node.name.text,
                                          on_param ? "a run-time parameter" : "`step`");
  }
}

void Elaborator::elaborate_state(Instance& instance, const ast::StateItem& node) {
  Symbol symbol;
  symbol.span = node.name.span;
  auto type = type_of(node.type);
  if (type && is_by_rows()) type = by_rows(*type, tree()[node.type].span);
  if (!type) {
    declare_item(instance, node.name, std::move(symbol));
    return;
  }
  check_state_size(node, *type);
  const BodyKind outer = std::exchange(body_, BodyKind::StateInit);
  wanted_ = &*type;
  Value init = error(node.name.span);
  if (node.initial.has_value()) {
    const Span span = tree()[node.initial].span;
    init = in_block(span, [&] { return fit_to(expr(node.initial), *type, node.name.text, span); });
  } else {
    reporter_.report<DiagKind::MissingItem>(node.name.span, node.name.text, "first value");
  }
  wanted_ = nullptr;
  body_ = outer;
  symbol.kind = SymbolKind::State;
  instance.has_states = true;
  symbol.index = static_cast<std::uint32_t>(out_.info.states.size());
  out_.info.states.push_back({instance.prefix + node.name.text, *type});
  out_.state_inits.push_back(init.expr);
  declare_item(instance, node.name, std::move(symbol));
}

}  // namespace cinch::sema
