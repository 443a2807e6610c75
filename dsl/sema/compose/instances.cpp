// Instances: their methods, their shapes, and the rules for their items.
#include "dsl/sema/compose/items.h"

#include <algorithm>

#include "dsl/sema/composition.h"
#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

const char* keyword_of(ast::MethodKind kind) {
  constexpr const char* kWords[] = {"encode", "decode", "finish", "sync"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace

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

void Items::restart_draws() {
  for (auto& each : instances_) each->own_draws = 0;
  num_methods_ = 0;
}

Instance* Items::add_root(Spec& spec) {
  out_.info.is_matrix = takes_matrix(spec);
  prover_.set_matrix(out_.info.is_matrix);
  number_compressors(spec);
  return add_instance(spec, "");
}

Instance* Items::add_instance(Spec& spec, const std::string& prefix) {
  instances_.push_back(std::make_unique<Instance>());
  Instance& instance = *instances_.back();
  instance.spec = &spec;
  instance.prefix = prefix;
  instance.number = spec.number.value_or(0);  // number_compressors gave it one
  instance.elements = pool().n();
  Environment env{&instance.unit(), &instance, {Scope{}}};
  env.draw_instance = &instance;
  collect_items(instance);
  all_.exprs.with_environment(env, [&] { all_.params.bind_params(instance); });
  for (auto& [slot, inner] : spec.inner) {
    Instance* made = add_instance(*inner, prefix + slot + ".");
    instance.inner[slot] = made;
    instance.names.insert_or_assign(
        slot, Symbol{.kind = SymbolKind::Inner, .span = spec.node->name.span, .inner = made});
    if (made->method(ast::MethodKind::Sync) != nullptr) {
      reporter_.report<DiagKind::NoProtocol>(spec.node->name.span, made->name());
    }
  }
  all_.exprs.with_environment(env, [&] {
    find_shape(instance);
    check_items(instance);
  });
  return &instance;
}

void Items::add_method(Instance& instance, const ast::Method& method) {
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

void Items::collect_items(Instance& instance) {
  for (ast::ItemId id : instance.tree().list(instance.spec->node->items)) {
    const ast::Item& item = instance.tree()[id];
    if (const auto* method = std::get_if<ast::Method>(&item.node)) {
      add_method(instance, *method);
    } else if (const auto* wire = std::get_if<ast::WireItem>(&item.node)) {
      if (instance.wire_item != nullptr) {
        reporter_.report<DiagKind::DuplicateName>(item.span, "wire");
      }
      instance.wire_item = wire;
    } else if (std::holds_alternative<ast::Again>(item.node)) {
      if (instance.has_again) {
        reporter_.report<DiagKind::DuplicateName>(item.span, "again")
            .note(instance.again_span, "first here");
      } else {
        instance.has_again = true;
        instance.again_span = item.span;
      }
    }
  }
}

// The shape of the gradient that encode or sync takes. A wrapper without either takes what its
// inner compressor takes.
void Items::find_shape(Instance& instance) {
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
    sizes_.name(n, "n", instance.gradient_span);
    sizes_.name(pool().rows(), "r", instance.gradient_span);
    sizes_.name(pool().cols(), "c", instance.gradient_span);
    return;
  }
  reporter_.report<DiagKind::BadGradientType>(
      tree[param.type].span, std::string(instance.unit().source->text(tree[param.type].span)));
}

void Items::check_items(Instance& instance) {
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
    if (instance.has_again) {
      reporter_.report<DiagKind::ItemNotAllowed>(instance.again_span, "again", "sync");
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

void Items::declare_item(Instance& instance, const ast::Name& name, Symbol symbol) {
  if (Expressions::is_taken(name.text, &instance)) {
    reporter_.report<DiagKind::BuiltinNameTaken>(name.span, name.text);
    return;
  }
  text_.record_type(name.span, symbol);
  const auto [at, is_new] = instance.names.try_emplace(name.text, symbol);
  if (is_new) return;
  reporter_.report<DiagKind::DuplicateName>(name.span, name.text)
      .note(at->second.span, "first declared here");
}

Environment Items::environment_of(Instance& instance) {
  Environment env{&instance.unit(), &instance, {Scope{}}};
  env.draw_instance = &instance;
  env.method = ++num_methods_;
  return env;
}

}  // namespace cinch::sema
