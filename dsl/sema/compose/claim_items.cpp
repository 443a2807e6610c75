// Claims and their arguments, own and inherited.
#include "dsl/sema/compose/items.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

constexpr auto kNothing = ClaimTakes::Nothing;
constexpr auto kClaims = std::to_array<ClaimInfo>({
#define CINCH_CLAIM(Kind, name, takes, meaning) {ClaimKind::Kind, name, ClaimTakes::takes, meaning},
#include "dsl/sema/claims.def"
});

const char* wanted_by(ClaimTakes takes) {
  switch (takes) {
    case kNothing:
      return "nothing";
    case ClaimTakes::Number:
      return "one number that the host computes, from `n`, sizes and parameters";
    case ClaimTakes::Interval:
      return "two numbers, the least and the most";
    case ClaimTakes::State:
      return "the name of one of the compressor's states, of f32 and with an element for each of "
             "the "
             "gradient";
  }
  return "";
}

}  // namespace

std::span<const ClaimInfo> all_claims() {
  return kClaims;
}

const ClaimInfo* Items::find_claim(Span span, const std::string& name) {
  std::vector<std::string_view> names;
  for (const ClaimInfo& info : kClaims) {
    if (info.name == name) return &info;
    names.push_back(info.name);
  }
  reporter_.report<DiagKind::UnknownClaim>(span, name)
      .suggest(span, std::string(dsl::nearest_name(name, names)));
  return nullptr;
}

std::optional<HostExprId> Items::claimed_number(ast::ExprId id) {
  const ModeScope scope(mode_);
  mode_.in_host = true;
  mode_.in_claim = true;
  const std::size_t errors = reporter_.num_errors();
  const Value value = FOUND(all_.exprs.expr(id));
  if (!value.is_host() || value.is_big || pool().type(value.host) == HostType::Bool) {
    if (reporter_.num_errors() == errors) {
      reporter_.report<DiagKind::NotKnownOnHost>(value.span, "what is claimed");
    }
    return std::nullopt;
  }
  return value.host;
}

bool Items::read_claim_args(const Instance& instance, const ast::Call& call, Claim& claim) {
  const auto args = tree().list(call.args);
  const ClaimTakes takes = claim_info(claim.kind).takes;
  std::size_t read = 0;
  for (ast::ArgId id : args) {
    const ast::Arg& arg = tree()[id];
    if (takes == ClaimTakes::State) {
      const auto* name = std::get_if<ast::NameRef>(&tree()[arg.value].node);
      const auto at = name == nullptr ? instance.names.end() : instance.names.find(name->name.text);
      bool holds_gradient = at != instance.names.end() && at->second.kind == SymbolKind::State &&
                            !at->second.is_input;
      if (holds_gradient) {
        const Type& state = out_.info.states[at->second.index].type;
        const HostExprId elements =
            instance.rows ? pool().mul(instance.rows, instance.elements) : instance.elements;
        holds_gradient =
            state.dtype == kF32 && prover_.proves_equal(sizes_.num_elems(state), elements);
      }
      if (!holds_gradient)
        return mistake<DiagKind::BadClaim>(
            tree()[arg.value].span, std::string(claim_info(claim.kind).name), wanted_by(takes));
      claim.state = at->second.index;
    } else if (read < 2) {
      const auto number = FOUND(claimed_number(arg.value));
      claim.numbers[read] = number;
    }
    ++read;
  }
  return true;
}

void Items::add_claim(Instance& instance, Claim claim) {
  const auto same = [&](const Claim& other) { return other.kind == claim.kind; };
  const auto first = std::ranges::find_if(instance.claims, same);
  if (first == instance.claims.end()) {
    instance.claims.push_back(std::move(claim));
    return;
  }
  reporter_.report<DiagKind::DuplicateName>(claim.span, std::string(claim_info(claim.kind).name))
      .note(first->span, "first claimed here");
}

// `inner.unbiased`: claimed if the wrapped compressor claims it.
void Items::inherit_claim(Instance& instance, const ast::Expr& claim, const ast::FieldRef& member) {
  const auto* name = std::get_if<ast::NameRef>(&tree()[member.base].node);
  const auto at = name == nullptr ? instance.inner.end() : instance.inner.find(name->name.text);
  if (at == instance.inner.end()) {
    const std::string shown(env_->unit->source->text(claim.span));
    reporter_.report<DiagKind::UnknownClaim>(claim.span, shown);
    return;
  }
  const ClaimInfo* info = find_claim(member.field.span, member.field.text);
  if (info == nullptr) return;
  for (const Claim& inner : at->second->claims) {
    if (inner.kind != info->kind) continue;
    Claim inherited = inner;
    inherited.span = claim.span;
    add_claim(instance, std::move(inherited));
    return;
  }
}

void Items::elaborate_claim(Instance& instance, ast::ExprId id) {
  const ast::Expr& whole = tree()[id];
  const auto* member = std::get_if<ast::FieldRef>(&whole.node);
  if (member != nullptr) {
    inherit_claim(instance, whole, *member);
    return;
  }
  const auto* call = std::get_if<ast::Call>(&whole.node);
  const ast::Expr& named = call == nullptr ? whole : tree()[call->callee];
  const ClaimInfo* info = find_claim(named.span, std::string(env_->unit->source->text(named.span)));
  if (info == nullptr) return;
  const bool has_label =
      call != nullptr && std::ranges::any_of(tree().list(call->args), [&](ast::ArgId arg) {
        return !tree()[arg].label.text.empty();
      });
  const std::uint32_t given = call == nullptr ? 0 : call->args.count;
  const ClaimTakes takes = info->takes;
  const std::uint32_t num_args = takes == kNothing ? 0 : takes == ClaimTakes::Interval ? 2 : 1;
  if (given != num_args || has_label) {
    reporter_.report<DiagKind::BadClaim>(whole.span, std::string(info->name), wanted_by(takes));
    return;
  }
  const std::string text(env_->unit->source->text(whole.span));
  Claim claim{info->kind, text, whole.span, {}, 0};
  if (call != nullptr && !read_claim_args(instance, *call, claim)) return;
  add_claim(instance, std::move(claim));
}

void Items::elaborate_claims(Instance& instance, const ast::Claims& node) {
  for (ast::ExprId id : tree().list(node.claims)) elaborate_claim(instance, id);
}

}  // namespace cinch::sema
