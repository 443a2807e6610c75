// Finds carriers on trees of compressors, before elaboration.
#include "dsl/sema/carriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;
using rt::CarrierKind;

namespace {

std::unique_ptr<Spec> copy_spec(const Spec& spec) {
  auto copy = std::make_unique<Spec>();
  copy->decl = spec.decl;
  copy->node = spec.node;
  copy->fixed = spec.fixed;
  copy->fixed_spans = spec.fixed_spans;
  copy->named = spec.named;
  copy->outside = spec.outside;
  copy->number = spec.number;
  copy->is_stand_in = spec.is_stand_in;
  copy->is_of_clause = spec.is_of_clause;
  copy->is_carrier = spec.is_carrier;
  for (const auto& [slot, inner] : spec.inner) copy->inner[slot] = copy_spec(*inner);
  return copy;
}

const ast::Method* method_of(const Spec& spec, ast::MethodKind kind) {
  const ast::Module& tree = spec.decl.unit->tree;
  for (ast::ItemId id : tree.list(spec.node->items)) {
    const auto* method = std::get_if<ast::Method>(&tree[id].node);
    if (method != nullptr && method->kind == kind) return method;
  }
  return nullptr;
}

std::vector<std::string> states_of(const Spec& spec) {
  const ast::Module& tree = spec.decl.unit->tree;
  std::vector<std::string> names;
  for (ast::ItemId id : tree.list(spec.node->items)) {
    if (const auto* state = std::get_if<ast::StateItem>(&tree[id].node))
      names.push_back(state->name.text);
  }
  return names;
}

// Is it `conserves(state)`?
bool is_conserved_by(const ast::Module& tree, ast::ExprId claim, const std::string& state) {
  const auto* call = std::get_if<ast::Call>(&tree[claim].node);
  if (call == nullptr || call->args.count != 1) return false;
  const auto* name = std::get_if<ast::NameRef>(&tree[call->callee].node);
  const auto& arg = tree[tree[tree.list(call->args).front()].value].node;
  const auto* given = std::get_if<ast::NameRef>(&arg);
  return name != nullptr && name->name.text == "conserves" && given != nullptr &&
         given->name.text == state;
}

bool is_conserved(const Spec& spec, const std::string& state) {
  const ast::Module& tree = spec.decl.unit->tree;
  return std::ranges::any_of(tree.list(spec.node->items), [&](ast::ItemId id) {
    const auto* claims = std::get_if<ast::Claims>(&tree[id].node);
    return claims != nullptr &&
           std::ranges::any_of(tree.list(claims->claims), [&](ast::ExprId claim) {
             return is_conserved_by(tree, claim, state);
           });
  });
}

bool claims(const Spec& spec, std::string_view claim) {
  const ast::Module& tree = spec.decl.unit->tree;
  const auto is_it = [&](ast::ExprId id) {
    const auto* call = std::get_if<ast::Call>(&tree[id].node);
    const auto* name = std::get_if<ast::NameRef>(&tree[call == nullptr ? id : call->callee].node);
    return name != nullptr && name->name.text == claim;
  };
  return std::ranges::any_of(tree.list(spec.node->items), [&](ast::ItemId id) {
    const auto* item = std::get_if<ast::Claims>(&tree[id].node);
    return item != nullptr && std::ranges::any_of(tree.list(item->claims), is_it);
  });
}

bool is_free_of_states(const Spec& spec) {
  return states_of(spec).empty() && std::ranges::all_of(spec.inner, [](const auto& entry) {
           return is_free_of_states(*entry.second);
         });
}

// Under a residual, an unbiased compressor that is no contraction diverges. What has made a
// contraction of it (`scaled`) stays around it there: the residual makes up for what it takes away.
bool stays_under_residual(const Spec& inner, const Carrier& carrier) {
  return carrier.kind == CarrierKind::Program && claims(*carrier.spec, "unbiased") &&
         !claims(*carrier.spec, "contraction") && is_free_of_states(inner);
}

// A state that `finish` assigns, or "".
std::string state_of_finish(const Spec& spec, const std::vector<std::string>& states) {
  const ast::Method* finish = method_of(spec, ast::MethodKind::Finish);
  if (finish == nullptr) return "";
  const ast::Module& tree = spec.decl.unit->tree;
  const Span body = tree[finish->body].span;
  for (const ast::Stmt& stmt : tree.stmts.nodes) {
    const auto* assign = std::get_if<ast::Assign>(&stmt.node);
    if (assign == nullptr || stmt.span.begin < body.begin || stmt.span.end > body.end) continue;
    if (std::ranges::find(states, assign->target.text) != states.end()) return assign->target.text;
  }
  return "";
}

// Why the compressor cannot run on sums beside its runs on gradients, or "". Only a residual of the
// owner's own means the same there. What a rank does by its number says nothing of a sum.
std::string own_obstacle(const Spec& spec) {
  const std::vector<std::string> states = states_of(spec);
  const std::string& name = spec.node->name.text;
  for (const std::string& state : states) {
    if (is_conserved(spec, state)) continue;
    return fmt::format("the state `{}` of `{}` is no residual that a claim `conserves({})` covers",
                       state, name, state);
  }
  const ast::Method* decode = method_of(spec, ast::MethodKind::Decode);
  const ast::Module& tree = spec.decl.unit->tree;
  if (decode != nullptr && find_name(tree, tree[decode->body].span, kWorker) != nullptr)
    return fmt::format("`decode` of `{}` depends on the rank that sent the payload", name);
  const std::string assigned = state_of_finish(spec, states);
  if (assigned.empty()) return "";
  return fmt::format("`finish` of `{}` changes the state `{}`", name, assigned);
}

bool is_same(const Spec& a, const Spec& b) {
  if (!(a.decl == b.decl) || a.inner.size() != b.inner.size()) return false;
  return std::ranges::all_of(a.inner, [&](const auto& entry) {
    const auto at = b.inner.find(entry.first);
    return at != b.inner.end() && is_same(*entry.second, *at->second);
  });
}

Carrier none_because(std::string reason) {
  return {.kind = CarrierKind::None, .reason = std::move(reason)};
}

Carrier program_carrier(std::unique_ptr<Spec> spec, bool shares_draws) {
  Carrier carrier{.kind = CarrierKind::Program, .shares_draws = shares_draws};
  spec->is_carrier = true;
  carrier.spec = std::move(spec);
  return carrier;
}

std::string names_of(const Spec& spec) {
  std::vector<std::string> inner;
  inner.reserve(spec.inner.size());
  for (const auto& [slot, each] : spec.inner) inner.push_back(names_of(*each));
  const std::string& name = spec.node->name.text;
  return inner.empty() ? name : fmt::format("{}({})", name, fmt::join(inner, ", "));
}

std::string carried_by(const Carrier& carrier) {
  switch (carrier.kind) {
    case CarrierKind::Itself:
      return "itself";
    case CarrierKind::Exact:
      return "f32 (exact)";
    case CarrierKind::Program:
      return "`" + names_of(*carrier.spec) + "`";
    case CarrierKind::None:
      return "nothing: " + carrier.reason;
  }
  return "";
}

}  // namespace

Carrier Carriers::of_program(Spec& spec) {
  number_compressors(spec);
  for (const OpenParam& open : open_params(spec)) {
    open.spec->outside[open.param->name.text] = open.name;
  }
  Carrier carrier = of(spec);
  if (carrier.kind != CarrierKind::Program || takes_matrix(*carrier.spec) == takes_matrix(spec)) {
    return carrier;
  }
  // A stand-in takes what it gets, so only a clause can have brought in another shape.
  reporter_.report<DiagKind::CarrierShape>(spec.node->name.span, names_of(*carrier.spec),
                                           takes_matrix(spec) ? "matrices" : "vectors");
  return none_because("its carrier takes another shape");
}

Carrier Carriers::of(Spec& spec) {
  // Sums of a `sync` program are its own matter.
  const bool is_protocol = method_of(spec, ast::MethodKind::Sync) != nullptr;
  if (spec.is_carrier || spec.is_stand_in || is_protocol) return {};
  const ast::Module& tree = spec.decl.unit->tree;
  for (ast::ItemId id : tree.list(spec.node->items)) {
    const auto* clause = std::get_if<ast::Again>(&tree[id].node);
    if (clause != nullptr) return of_clause(spec, tree[id], *clause);
  }
  return derived(spec);
}

Carrier Carriers::of_clause(Spec& spec, const ast::Item& item, const ast::Again& clause) {
  const std::string mistake = "there is a mistake in its clause `again`";
  const auto* name = std::get_if<ast::NameRef>(&spec.decl.unit->tree[clause.carrier].node);
  if (name != nullptr && name->name.text == "exact") {
    return {.kind = CarrierKind::Exact};
  }
  if (std::ranges::find(open_, spec.node) != open_.end()) {
    reporter_.report<DiagKind::RecursiveCarrier>(item.span, spec.node->name.text);
    return none_because(mistake);
  }
  bool shares_draws = clause.is_shared;
  const bool is_wrapped =
      !std::holds_alternative<ast::NameRef>(spec.decl.unit->tree[clause.carrier].node);
  std::optional<Carrier> missing;  // of what the clause names
  const auto carrier_of = [&](const std::string& slot) -> std::unique_ptr<Spec> {
    // What a program's text wraps ends somewhere. What clauses wrap may lead back to them.
    std::vector<const ast::Compressor*> outer;
    if (!spec.is_of_clause) std::swap(outer, open_);
    Spec& inner = *spec.inner.at(slot);
    Carrier found = of(inner);
    if (!spec.is_of_clause) std::swap(outer, open_);
    if (is_wrapped && stays_under_residual(inner, found)) found = {};
    shares_draws |= found.shares_draws;
    if (found.kind == CarrierKind::Program) return std::move(found.spec);
    if (found.kind != CarrierKind::Itself) {
      missing = std::move(found);
      return nullptr;
    }
    auto copy = copy_spec(inner);
    copy->is_carrier = true;
    return copy;
  };
  auto made = make_clause_spec(module_, {spec, carrier_of}, clause.carrier, reporter_);
  if (missing) return std::move(*missing);
  if (made == nullptr) return none_because(mistake);
  if (wants_inner(module_, *made, false)) {
    reporter_.report<DiagKind::NeedsInner>(item.span, made->node->name.text, "inner");
    return none_because(mistake);
  }
  if (!made->number) made->number = spec.number;
  open_.push_back(spec.node);
  bool is_good = true;
  if (made->decl != spec.decl) {
    is_good = carries_itself(made, item.span, shares_draws);
  } else if (const std::string obstacle = own_obstacle(spec); !obstacle.empty()) {
    is_good = false;
    reporter_.report<DiagKind::NotItsOwnCarrier>(item.span, names_of(spec), "nothing: " + obstacle);
  }
  open_.pop_back();
  return is_good ? program_carrier(std::move(made), shares_draws) : none_because(mistake);
}

// What has no states has no other meaning on sums: its own carrier takes its place.
bool Carriers::carries_itself(std::unique_ptr<Spec>& made, const Span& span, bool& shares_draws) {
  if (method_of(*made, ast::MethodKind::Sync) != nullptr) {
    reporter_.report<DiagKind::NoProtocol>(span, made->node->name.text);
    return false;
  }
  const std::size_t errors = reporter_.num_errors();
  Carrier carrier = of(*made);
  if (reporter_.num_errors() != errors) return false;
  shares_draws |= carrier.shares_draws;
  const bool is_program = carrier.kind == CarrierKind::Program;
  if (carrier.kind == CarrierKind::Itself || (is_program && is_same(*carrier.spec, *made)))
    return true;
  if (is_program && is_free_of_states(*made) && is_free_of_states(*carrier.spec)) {
    made = std::move(carrier.spec);
    return true;
  }
  reporter_.report<DiagKind::NotItsOwnCarrier>(span, names_of(*made), carried_by(carrier));
  return false;
}

Carrier Carriers::derived(Spec& spec) {
  bool is_same_program = true, shares_draws = false;
  std::map<std::string, std::unique_ptr<Spec>> inner;
  for (const auto& [slot, each] : spec.inner) {
    Carrier found = of(*each);
    if (found.kind == CarrierKind::Exact || found.kind == CarrierKind::None) return found;
    if (!states_of(spec).empty() && stays_under_residual(*each, found)) found = {};
    is_same_program &= found.kind == CarrierKind::Itself;
    shares_draws |= found.shares_draws;
    if (found.spec != nullptr) inner[slot] = std::move(found.spec);
  }
  if (const std::string obstacle = own_obstacle(spec); !obstacle.empty()) {
    return none_because(obstacle + ": say `again …`");
  }
  if (is_same_program) return {};
  auto made = copy_spec(spec);
  for (auto& [slot, carrier] : inner) made->inner[slot] = std::move(carrier);
  return program_carrier(std::move(made), shares_draws);
}

rt::SumCarrier Carriers::describe(const Carrier& carrier, const std::vector<Binding>& bindings) {
  const bool is_program = carrier.kind == CarrierKind::Program;
  return {carrier.kind, is_program ? text_of(*carrier.spec, bindings) : carrier.reason,
          carrier.shares_draws};
}

std::string Carriers::text_of(const Spec& spec, const std::vector<Binding>& bindings) {
  const ast::Module& tree = spec.decl.unit->tree;
  std::vector<std::string> args;
  for (ast::ParamId id : tree.list(spec.node->params)) {
    const ast::Param& param = tree[id];
    const std::string& name = param.name.text;
    if (const auto inner = spec.inner.find(name); inner != spec.inner.end()) {
      const std::string label = args.empty() ? "" : name + ": ";
      args.push_back(fmt::format("{}{}", label, text_of(*inner->second, bindings)));
    } else if (const std::string value = value_text(spec, param, bindings); !value.empty()) {
      args.push_back(fmt::format("{}: {}", name, value));
    }
  }
  const std::string& name = spec.node->name.text;
  return args.empty() ? name : fmt::format("{}({})", name, fmt::join(args, ", "));
}

static std::string shown_value(const FileUnit& unit, const ast::Param& param, double value) {
  const auto& type = unit.tree[param.type].node;
  if (const auto* words = std::get_if<ast::EnumType>(&type)) {
    const auto i = static_cast<std::size_t>(value);
    return i < words->names.size() ? words->names[i].text : "";
  }
  const auto* scalar = std::get_if<ast::ScalarType>(&type);
  if (scalar != nullptr && scalar->name.text == "bool") return value != 0 ? "true" : "false";
  return fmt::format("{}", value);
}

// "" for values that are the compressor's own business.
std::string Carriers::value_text(const Spec& spec, const ast::Param& param,
                                 const std::vector<Binding>& bindings) {
  const FileUnit& unit = *spec.decl.unit;
  const std::string& name = param.name.text;
  if (!param.type.has_value()) return "";
  if (const auto fixed = spec.fixed.find(name); fixed != spec.fixed.end()) {
    return shown_value(unit, param, fixed->second.to_double());
  }
  const auto outside = spec.outside.find(name);
  if (outside == spec.outside.end()) return "";
  for (const Binding& binding : std::views::reverse(bindings)) {
    if (binding.name != outside->second) continue;
    return binding.word.empty() ? shown_value(unit, param, binding.value) : binding.word;
  }
  NamedParam at{&unit, &param};
  if (const auto named = spec.named.find(name); named != spec.named.end()) {
    for (const NamedParam& each : named->second) {
      if (each.declared->initial.has_value()) at = each;
    }
  }
  const ast::Param& declared = *at.declared;
  if (!declared.initial.has_value() || !declared.type.has_value()) return "";
  auto value = word_given(at.unit->tree, declared, at.unit->tree, declared.initial);
  if (!value) {
    value = Elaboration(module_, reporter_).numbers.evaluate_constant(*at.unit, declared.initial);
  }
  return value ? shown_value(*at.unit, declared, value->to_double()) : "";
}

std::vector<Binding> bindings_of_carrier(Spec& carrier, const std::vector<Binding>& bindings) {
  std::vector<Binding> reaching;
  const std::vector<OpenParam> open = open_params(carrier);
  for (const Binding& binding : bindings) {
    const bool reaches = std::ranges::any_of(open, [&](const OpenParam& param) {
      const auto outside = param.spec->outside.find(param.param->name.text);
      return outside != param.spec->outside.end() && outside->second == binding.name;
    });
    if (reaches) reaching.push_back(binding);
  }
  return reaching;
}

}  // namespace cinch::sema
