// Exact numbers in integer types: quotients rounded down, and the bits of numbers that may be
// negative.
#include <algorithm>
#include <utility>

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/types/conversions.h"

namespace cinch::sema {
Value Numbers::floor_div_of(Value a, Value b, const std::string& name, Span span) {
  if (a.is_error() || b.is_error()) return error_value(span);
  const auto apply = [&](ScalarOp op, std::vector<Value> operands) {
    return all_.operators.scalar_op(op, std::move(operands), span, name);
  };
  if (a.is_typed()) a = build_.shared(a, "dividend");
  if (b.is_typed()) b = build_.shared(b, "divisor");
  Value down = without_quotient(apply(ScalarOp::div, {a, b}));
  const Value rest = apply(ScalarOp::mod, {a, b});
  if (down.is_error() || rest.is_error()) return error_value(span);
  if (types_.is_real(down)) return all_.operators.cannot_combine(name, a, b, span);
  const auto is_natural = [&](const Value& v) {
    if (v.is_typed()) return is_unsigned_int(v.type.dtype);
    return v.is_host() && !v.declared && prover_.proves_nonnegative(v.host);
  };
  if (is_natural(a) && is_natural(b)) return down;
  const Value zero = host_value(pool().const_int(0), span),
              one = host_value(pool().const_int(1), span);
  const Value is_rest = apply(ScalarOp::ne, {rest, zero});
  const Value is_positive = apply(ScalarOp::gt, {rest, zero});
  const Value differs = apply(ScalarOp::ne, {is_positive, apply(ScalarOp::gt, {b, zero})});
  const Value below = apply(ScalarOp::sub, {down, one});
  Value result =
      apply(ScalarOp::select, {apply(ScalarOp::bit_and, {is_rest, differs}), below, down});
  result.quotient.reset();
  return result;
}

// Was an exact number computed in a signed type, with no constant that is known to be too small for
// this type, and with nothing to recompute its low bits?
bool Numbers::is_only_signed(const Value& value, DType type) const {
  if (!value.is_typed() || !value.is_exact || !is_signed_int(value.type.dtype)) return false;
  if (value.remake != nullptr && value.remake->keeps_low_bits) return false;
  return std::ranges::all_of(value.chosen, [&](HostExprId number) {
    return fits(pool().const_value(number).as_int(), type);
  });
}

Value Numbers::signed_low_bits(const Value& value, DType type) {
  Value made = conversions_.convert(conversions_.materialize(value), kI64, value.span);
  if (type.bits < 64) {
    const HostExprId all = pool().const_int(static_cast<std::int64_t>(max_int(type)));
    made = all_.operators.typed_scalar_op(ScalarOp::bit_and, {made, host_value(all, value.span)},
                                          value.span, "&");
    return conversions_.convert(made, type, value.span);
  }
  Expr bits{ExprKind::Bitcast, made.type, value.span};
  bits.type.dtype = type;
  bits.args = {made.expr};
  return build_.typed(std::move(bits));
}

Value Numbers::as_low_bits(const Value& value, DType type) {
  if (is_unsigned_int(type) && is_only_signed(value, type)) return signed_low_bits(value, type);
  if (!is_unsigned_int(type) || !types_.may_be_negative(value)) return value;
  const bool is_wide = type.bits == 64;
  Expr size{ExprKind::HostSize, scalar_type(is_wide ? kI64 : type), value.span};
  size.size = value.host;
  if (!is_wide) {
    const HostExprId all = pool().const_int(static_cast<std::int64_t>(max_int(type)));
    size.size = pool().make(HostOp::BitAnd, value.host, all);
    return build_.typed(std::move(size));
  }
  Expr bits{ExprKind::Bitcast, scalar_type(type), value.span};
  bits.args = {build_.typed(std::move(size)).expr};
  return build_.typed(std::move(bits));
}

Value Numbers::as_mask(const Value& value, DType type) {
  const bool is_table = value.kind == ValueKind::Table;
  if (!is_unsigned_int(type) || holds_big(value) || (!is_table && !value.is_host())) return value;
  const std::int64_t least = min_int(make_int(type.bits).value_or(kI64));
  // A u64 is stored as a literal of 2^63 or more is.
  const auto is_set = [&](HostExprId& id) {
    if (!pool().is_const(id) || pool().type(id) != HostType::Int) return false;
    const std::int64_t number = pool().const_value(id).as_int();
    if (number >= 0 || number < least) return false;
    const auto bits = static_cast<std::uint64_t>(number) & max_int(type);
    id = pool().const_int(static_cast<std::int64_t>(bits));
    return type.bits == 64;
  };
  Value mask = value;
  if (!is_table) {
    mask.is_big = is_set(mask.host);
    return mask;
  }
  for (std::size_t i = 0; i < mask.table.size(); ++i) mask.big_elements[i] = is_set(mask.table[i]);
  return mask;
}

Value Numbers::narrow_bits(const Value& value, DType type) {
  const DType wide = arithmetic_type(type);
  const Span span = value.span;
  if (!conversions_.is_every_choice_in(value, type)) return error_value(span);
  const Value all = conversions_.coerce(value, wide);
  const auto apply = [&](ScalarOp op, const Value& made, std::int64_t number) {
    return all_.operators.scalar_op(op, {made, host_value(pool().const_int(number), span)}, span,
                                    "|=");
  };
  if (is_unsigned_int(type)) {
    const auto mask = static_cast<std::int64_t>(max_int(type));
    return conversions_.convert(apply(ScalarOp::bit_and, all, mask), type, span);
  }
  const std::int64_t above = wide.bits - type.bits;
  return conversions_.convert(apply(ScalarOp::shr, apply(ScalarOp::shl, all, above), above), type,
                              span);
}

// Constant expressions, and constants that files declare.

using dsl::DiagKind;

Value Numbers::on_host(ast::ExprId id) {
  const ModeScope scope(mode_);
  mode_.in_host = true;
  return all_.exprs.expr(id);
}

std::optional<HostExprId> Numbers::host_size(ast::ExprId id, std::string_view what,
                                             bool takes_counts) {
  const std::size_t errors = reporter_.num_errors();
  const Value value = FOUND(on_host(id));
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

std::optional<HostExprId> Numbers::host_float(ast::ExprId id, std::string_view what) {
  const std::size_t errors = reporter_.num_errors();
  const Value value = as_quotient(FOUND(on_host(id)));
  const bool is_number = value.is_host() && pool().type(value.host) != HostType::Bool;
  if (is_number) return pool().cast(value.host, HostType::F64);
  if (reporter_.num_errors() == errors)
    reporter_.report<DiagKind::NotKnownOnHost>(value.span, what);
  return std::nullopt;
}

Value Numbers::constant(const Constant& number, Span span) {
  Value value = host_value(pool().constant(number.value), span);
  value.is_big = number.is_big;
  if (number.quotient) {
    value.quotient =
        std::make_shared<const Value>(host_value(pool().const_f64(*number.quotient), span));
  }
  return value;
}

std::optional<Constant> Numbers::constant_number(ast::ExprId id) {
  const Value value = FOUND(on_host(id));
  if (!value.is_host() || !pool().is_const(value.host))
    return mistake<DiagKind::NotConstant>(value.span);
  Constant number{pool().const_value(value.host), value.is_big, {}};
  if (value.quotient != nullptr) {
    number.quotient = pool().const_value(value.quotient->host).to_double();
  }
  return number;
}

// The host's integers have 63 bits, so larger numbers become floats.
std::optional<HostValue> Numbers::constant_value(ast::ExprId id) {
  const auto number = constant_number(id);
  if (!number || !number->is_big) return number ? std::optional(number->value) : std::nullopt;
  return HostValue::from_f64(number->to_double());
}

std::optional<std::int64_t> Numbers::constant_int(ast::ExprId id) {
  const auto value = FOUND(constant_value(id));
  if (value.type != HostType::Int)
    return mistake<DiagKind::BadType>(tree()[id].span, "a whole number", "a float");
  return value.as_int();
}

// A constant made of numbers is computed once. A constant that uses operators stands for its
// expression, which is elaborated at each use; passes merge repeated computations.
Value Numbers::const_value(const DeclRef& decl, const ast::Const& node) {
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
Value Numbers::known_const(const KnownConst& known, Span span) {
  all_.growth.count_levels(known.levels);
  if (!all_.growth.holds_levels(known.levels, span)) return error_value(span);
  if (!known.is_table) {
    Value value = constant(known.numbers.front(), span);
    value.declared = known.declared;
    value.is_hex = known.is_hex;
    return value;
  }
  Value table{.is_hex = known.is_hex};
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

std::optional<KnownConst> Numbers::as_known_const(const Value& value) {
  KnownConst known{.is_table = value.kind == ValueKind::Table,
                   .table_cols = value.table_cols,
                   .declared = value.declared,
                   .is_hex = value.is_hex};
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

Value Numbers::elaborate_const_value(const DeclRef& decl, const ast::Const& node) {
  if (std::find(open_consts_.begin(), open_consts_.end(), &node) != open_consts_.end())
    return mistake<DiagKind::RecursiveComposition>(node.name.span, node.name.text);
  open_consts_.push_back(&node);
  Environment env{decl.unit, nullptr, {Scope{}}};
  Value value;
  const ModeScope scope(mode_);
  mode_.in_constant = true;
  mode_.in_host = false;
  all_.exprs.with_environment(env, [&] { value = all_.exprs.expr(node.value); });
  open_consts_.pop_back();
  return value;
}

std::optional<Constant> Numbers::evaluate_constant(const FileUnit& unit, ast::ExprId id) {
  const GrowthLimits::Use use(all_.growth, unit.tree[id].span);
  Environment env{&unit, nullptr, {Scope{}}};
  std::optional<Constant> value;
  const ModeScope scope(mode_);
  mode_.in_constant = true;
  all_.exprs.with_environment(env, [&] { value = constant_number(id); });
  return value;
}

void Numbers::check_const(const DeclRef& decl) {
  const auto& node = std::get<ast::Const>((*decl).node);
  const GrowthLimits::Use use(all_.growth, node.name.span);
  Environment env{decl.unit, nullptr, {Scope{}}};
  std::vector<StmtId> stmts;
  build_.collect_into(&stmts);
  all_.exprs.with_environment(env, [&] { const_value(decl, node); });
  build_.collect_into(nullptr);
}

}  // namespace cinch::sema
