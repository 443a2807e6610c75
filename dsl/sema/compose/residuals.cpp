// Compressors that keep what another one loses, and what they may wrap.
#include <algorithm>

#include "dsl/sema/compose/items.h"
#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

// Does `encode` decode what the wrapped compressor made of the gradient? Only wrappers that keep
// what this loses do so.
bool decodes_in_encode(const Instance& instance, const std::string& slot) {
  const ast::Method* encode = instance.method(ast::MethodKind::Encode);
  if (encode == nullptr) return false;
  const ast::Module& tree = instance.tree();
  const Span body = tree[encode->body].span;
  return std::ranges::any_of(tree.exprs.nodes, [&](const ast::Expr& node) {
    const auto* field = std::get_if<ast::FieldRef>(&node.node);
    if (field == nullptr || node.span.begin < body.begin || node.span.end > body.end) return false;
    const auto* base = std::get_if<ast::NameRef>(&tree[field->base].node);
    return base != nullptr && base->name.text == slot && field->field.text == "decode";
  });
}

const Claim* claim_of(const Instance& instance, ClaimKind kind) {
  const auto at = std::ranges::find(instance.claims, kind, &Claim::kind);
  return at == instance.claims.end() ? nullptr : &*at;
}

}  // namespace

void Residuals::find_own_states(const Instance& instance, std::vector<std::string>& found) const {
  for (const auto& [name, symbol] : instance.names) {
    if (symbol.kind != SymbolKind::State) continue;
    const Type& type = out_.info.states[symbol.index].type;
    const HostExprId elements =
        instance.rows ? pool().mul(instance.rows, instance.elements) : instance.elements;
    const bool is_gradient = prover_.proves_equal(sizes_.num_elems(type), elements);
    if (type.rank > 0 && is_gradient)
      found.push_back("`" + name + "` of `" + instance.name() + "`");
  }
}

void Residuals::find_states(const Instance& instance, std::vector<std::string>& found) const {
  find_own_states(instance, found);
  for (const auto& [slot, inner] : instance.inner) find_states(*inner, found);
}

// A variance below 1 is a contraction.
bool Residuals::loses_too_much(const Instance& inner) const {
  if (claim_of(inner, ClaimKind::Unbiased) == nullptr) return false;
  if (claim_of(inner, ClaimKind::Contraction) != nullptr) return false;
  const Claim* variance = claim_of(inner, ClaimKind::Variance);
  if (variance == nullptr || !pool().is_const(variance->numbers[0])) return true;
  return pool().const_value(variance->numbers[0]).to_double() >= 1;
}

void Residuals::check(const Instance& instance, Span span) {
  // A residual has an element for each of the gradient's: a counter keeps nothing that was lost.
  std::vector<std::string> own;
  find_own_states(instance, own);
  for (const auto& [slot, inner] : instance.inner) {
    if (!own.empty() && decodes_in_encode(instance, slot)) {
      std::vector<std::string> states;
      find_states(*inner, states);
      if (!states.empty()) {
        reporter_.report<DiagKind::ResidualOfStates>(span, instance.name(), states.front())
            .note("wrap the other way round, as in `momentum(error_feedback(topk))`");
      } else if (loses_too_much(*inner)) {
        reporter_.report<DiagKind::ResidualOfUnbiased>(span, inner->name(), instance.name());
      }
    }
    check(*inner, span);
  }
}

}  // namespace cinch::sema
