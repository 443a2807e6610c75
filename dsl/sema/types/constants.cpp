// Constant expressions, and constants that files declare.
#include "dsl/sema/types/constants.h"

#include <algorithm>
#include <utility>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Constants::on_host(ast::ExprId id) {
  const ModeScope scope(mode_);
  mode_.in_host = true;
  return all_.exprs.expr(id);
}

std::optional<HostExprId> Constants::host_size(ast::ExprId id, std::string_view what,
                                               bool takes_counts) {
  const std::size_t errors = reporter_.num_errors();
  const Value value = on_host(id);
  if (value.is_error()) return std::nullopt;
  if (!value.is_host() || value.is_big || pool().type(value.host) == HostType::Bool) {
    if (reporter_.num_errors() == errors) {
      auto& diag = reporter_.report<DiagKind::NotKnownOnHost>(value.span, what);
      if (takes_counts && value.is_typed()) {
        diag.note("a count fits, too: how many elements of a mask m are true is `len(nonzero(m))`");
      }
    }
    return std::nullopt;
  }
  return sizes_.one_form(pool().cast(value.host, HostType::Int));
}

Value Constants::constant(const Constant& number, Span span) {
  Value value = host_value(pool().constant(number.value), span);
  value.is_big = number.is_big;
  if (number.quotient) {
    value.quotient =
        std::make_shared<const Value>(host_value(pool().const_f64(*number.quotient), span));
  }
  return value;
}

std::optional<Constant> Constants::constant_number(ast::ExprId id) {
  const Value value = on_host(id);
  if (value.is_error()) return std::nullopt;
  if (!value.is_host() || !pool().is_const(value.host)) {
    reporter_.report<DiagKind::NotConstant>(value.span);
    return std::nullopt;
  }
  Constant number{pool().const_value(value.host), value.is_big, {}};
  if (value.quotient != nullptr) {
    number.quotient = pool().const_value(value.quotient->host).to_double();
  }
  return number;
}

// The host's integers have 63 bits, so larger numbers become floats.
std::optional<HostValue> Constants::constant_value(ast::ExprId id) {
  const auto number = constant_number(id);
  if (!number || !number->is_big) return number ? std::optional(number->value) : std::nullopt;
  return HostValue::from_f64(number->to_double());
}

std::optional<std::int64_t> Constants::constant_int(ast::ExprId id) {
  const auto value = constant_value(id);
  if (!value) return std::nullopt;
  if (value->type != HostType::Int) {
    reporter_.report<DiagKind::BadType>(tree()[id].span, "a whole number", "a float");
    return std::nullopt;
  }
  return value->as_int();
}

// A constant made of numbers is computed once. A constant that uses operators stands for its
// expression, which is elaborated at each use; passes merge repeated computations.
Value Constants::const_value(const DeclRef& decl, const ast::Const& node) {
  const std::pair key(&node, mode_.in_claim);
  const auto known = module_.known_consts.find(key);
  if (known != module_.known_consts.end()) return known_const(known->second, node.name.span);
  const GrowthLimits::Depth depth(all_.growth);
  const Value value = elaborate_const_value(decl, node);
  if (const auto numbers = as_known_const(value)) {
    module_.known_consts.emplace(key, *numbers).first->second.levels = depth.levels();
  }
  return value;
}

// Counts as many levels as its computation did, so that the order of uses does not matter.
Value Constants::known_const(const KnownConst& known, Span span) {
  all_.growth.count_levels(known.levels);
  if (!all_.growth.holds_levels(known.levels, span)) return error_value(span);
  if (!known.is_table) {
    Value value = constant(known.numbers.front(), span);
    value.declared = known.declared;
    value.is_hex = known.is_hex;
    return value;
  }
  Value table;
  table.is_hex = known.is_hex;
  if (known.quotient != nullptr) {
    table.quotient = std::make_shared<const Value>(known_const(*known.quotient, span));
  }
  table.kind = ValueKind::Table;
  table.span = span;
  table.table_cols = known.table_cols;
  for (const Constant& number : known.numbers) {
    add_element(table, pool().constant(number.value), number.is_big);
  }
  return table;
}

std::optional<KnownConst> Constants::as_known_const(const Value& value) {
  KnownConst known;
  known.is_table = value.kind == ValueKind::Table;
  known.table_cols = value.table_cols;
  known.declared = value.declared;
  known.is_hex = value.is_hex;
  if (known.is_table && value.quotient != nullptr) {
    const auto quotient = as_known_const(*value.quotient);
    if (quotient) known.quotient = std::make_shared<const KnownConst>(*quotient);
  }
  if (value.is_host() && pool().is_const(value.host)) {
    known.numbers.push_back({pool().const_value(value.host), value.is_big, {}});
    if (value.quotient != nullptr) {
      known.numbers.back().quotient = pool().const_value(value.quotient->host).to_double();
    }
  } else if (!known.is_table) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < value.table.size(); ++i) {
    known.numbers.push_back({pool().const_value(value.table[i]), value.big_elements[i], {}});
  }
  return known;
}

Value Constants::elaborate_const_value(const DeclRef& decl, const ast::Const& node) {
  if (std::find(open_consts_.begin(), open_consts_.end(), &node) != open_consts_.end()) {
    reporter_.report<DiagKind::RecursiveComposition>(node.name.span, node.name.text);
    return error_value(node.name.span);
  }
  open_consts_.push_back(&node);
  Environment env{decl.unit, nullptr, {Scope{}}};
  Value value;
  const ModeScope scope(mode_);
  mode_.in_constant = true;
  mode_.in_host = false;
  all_.names.with_environment(env, [&] { value = all_.exprs.expr(node.value); });
  open_consts_.pop_back();
  return value;
}

std::optional<Constant> Constants::evaluate_constant(const FileUnit& unit, ast::ExprId id) {
  const GrowthLimits::Use use(all_.growth, unit.tree[id].span);
  Environment env{&unit, nullptr, {Scope{}}};
  std::optional<Constant> value;
  const ModeScope scope(mode_);
  mode_.in_constant = true;
  all_.names.with_environment(env, [&] { value = constant_number(id); });
  return value;
}

void Constants::check_const(const DeclRef& decl) {
  const auto& node = std::get<ast::Const>((*decl).node);
  const GrowthLimits::Use use(all_.growth, node.name.span);
  Environment env{decl.unit, nullptr, {Scope{}}};
  std::vector<StmtId> stmts;
  build_.collect_into(&stmts);
  all_.names.with_environment(env, [&] { const_value(decl, node); });
  build_.collect_into(nullptr);
}

}  // namespace cinch::sema
