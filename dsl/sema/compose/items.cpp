// Constants, sizes and states of a compressor, and the order of all items.
#include "dsl/sema/compose/instances.h"

#include <utility>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

// Sizes come first, because the arguments of `set` may use them. Wrapped compressors come next,
// because a wire may be the wire of one of them.
void Instances::elaborate_items(Instance& instance) {
  const auto each = [&](auto&& handle) {
    for (ast::ItemId id : tree().list(instance.spec->node->items)) handle(tree()[id]);
  };
  Environment env = environment_of(instance);
  all_.names.with_environment(env, [&] {
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::Const>(&item.node)) elaborate_const(instance, *node);
      if (const auto* node = std::get_if<ast::SizeItem>(&item.node)) {
        elaborate_size(instance, *node);
      }
    });
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::SetItem>(&item.node))
        all_.sets.elaborate_set(instance, *node);
    });
    all_.sets.check_set_elements(instance);
  });
  for (const auto& [slot, inner] : instance.inner) {
    if (!inner->has_set_elements) inner->elements = instance.elements;
    if (!inner->rows) {
      inner->rows = instance.rows;
      inner->rows_span = instance.rows_span;
    }
    elaborate_items(*inner);
  }
  all_.names.with_environment(env, [&] {
    each([&](const ast::Item& item) {
      if (const auto* node = std::get_if<ast::StateItem>(&item.node)) {
        elaborate_state(instance, *node);
      }
    });
    all_.wires.elaborate_wire(instance);
    each([&](const ast::Item& item) {
      const auto* node = std::get_if<ast::Claims>(&item.node);
      if (node != nullptr) all_.claims.elaborate_claims(instance, *node);
    });
  });
}

Value Instances::constant_of(const ast::Const& node) {
  const ModeScope scope(mode_);
  mode_.in_constant = true;
  return build_.in_block(tree()[node.value].span, [&] { return all_.exprs.expr(node.value); });
}

void Instances::elaborate_const(Instance& instance, const ast::Const& node) {
  Symbol symbol;
  symbol.span = node.name.span;
  symbol.noun = "a constant";
  symbol.value = constant_of(node);
  const Value& value = symbol.value;
  if (value.is_host() && pool().is_const(value.host) && !value.is_big) {
    const double shown = pool().const_value(value.host).to_double();
    out_.info.constants.push_back({instance.prefix + node.name.text, shown});
  }
  declare_item(instance, node.name, std::move(symbol));
}

void Instances::elaborate_size(Instance& instance, const ast::SizeItem& node) {
  Symbol symbol;
  symbol.span = node.name.span;
  symbol.noun = "a size";
  if (const auto size = all_.constants.host_size(node.value, "a size")) {
    prover_.canonical(*size);  // later proofs begin from here
    symbol.value = host_value(*size, node.name.span);
    const bool is_plain = pool().is_const(*size) || host_op_num_args(pool().node(*size).op) == 0;
    if (!is_plain) {
      sizes_.name(*size, instance.prefix + node.name.text, node.name.span);
    }
    out_.info.sizes.push_back({instance.prefix + node.name.text, *size});
  }
  declare_item(instance, node.name, std::move(symbol));
}

void Instances::check_state_size(const ast::StateItem& node, const Type& type) {
  for (int i = 0; i < type.rank; ++i) {
    const bool on_param = pool().depends_on(type.dims[i], HostOp::Param);
    if (!on_param && !pool().depends_on(type.dims[i], HostOp::Step)) continue;
    reporter_.report<DiagKind::StateSize>(tree()[node.type].span, node.name.text,
                                          on_param ? "a run-time parameter" : "`step`");
  }
}

Value Instances::first_value(const ast::StateItem& node, const Type& type) {
  if (!node.initial.has_value()) {
    reporter_.report<DiagKind::MissingItem>(node.name.span, node.name.text, "first value");
    return error_value(node.name.span);
  }
  const ModeScope scope(mode_);
  mode_.body = BodyKind::StateInit;
  mode_.wanted = &type;
  const Span span = tree()[node.initial].span;
  return build_.in_block(span, [&] {
    return conversions_.fit_to(all_.exprs.expr(node.initial), type, node.name.text, span);
  });
}

void Instances::elaborate_state(Instance& instance, const ast::StateItem& node) {
  Symbol symbol;
  symbol.span = node.name.span;
  auto type = all_.written_types.type_of(node.type);
  if (type && is_by_rows()) type = all_.rows.by_rows(*type, tree()[node.type].span);
  if (!type) {
    declare_item(instance, node.name, std::move(symbol));
    return;
  }
  check_state_size(node, *type);
  const Value init = first_value(node, *type);
  symbol.kind = SymbolKind::State;
  instance.has_states = true;
  symbol.index = static_cast<std::uint32_t>(out_.info.states.size());
  out_.info.states.push_back({instance.prefix + node.name.text, *type});
  out_.state_inits.push_back(init.expr);
  declare_item(instance, node.name, std::move(symbol));
}

}  // namespace cinch::sema
