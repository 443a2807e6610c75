// Quotients, and numbers that are recomputed in the type that they turn out to need.
#include "dsl/sema/types/conversions.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

namespace {

// Is the quotient of the result the operator's result for the operands' quotients?
bool keeps_quotient(ScalarOp op) {
  switch (op) {
    case ScalarOp::neg:
    case ScalarOp::abs:
    case ScalarOp::sign:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::div:
    case ScalarOp::divide_or_zero:
    case ScalarOp::min:
    case ScalarOp::max:
    case ScalarOp::clamp:
    case ScalarOp::select:
      return true;
    default:
      return false;
  }
}

bool divides(ScalarOp op) {
  return op == ScalarOp::div || op == ScalarOp::divide_or_zero;
}

// Do the low bits of the result depend only on the operands' low bits?
bool works_on_low_bits(ScalarOp op) {
  switch (op) {
    case ScalarOp::neg:
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::bit_and:
    case ScalarOp::bit_or:
    case ScalarOp::bit_xor:
    case ScalarOp::bit_not:
    case ScalarOp::shl:
    case ScalarOp::select:
      return true;
    default:
      return false;
  }
}

}  // namespace

Value Numbers::made_of_exact(const Value& array, Span span,
                             const std::function<Value(const Value&)>& made_of) {
  const bool is_table = array.kind == ValueKind::Table;
  const bool is_anew = is_table || (array.is_exact && array.remake != nullptr);
  Value result = made_of(conversions_.materialize(array));
  const bool is_exact =
      is_anew && result.is_typed() && is_int(result.type.dtype) && !holds_big(array);
  if (!is_exact) return result;
  const Value plain = result;
  const auto made = std::make_shared<Remake>(Remake{{}, has_quotient(array), true});
  made->holds_shift = holds_shift(array);
  made->has_fraction = types_.has_fraction(array);
  made->keeps_low_bits = true;
  made->in_type = [this, array, made_of, plain, span](DType to) {
    if (is_bool(to)) return conversions_.convert(plain, to, span);
    return conversions_.convert(made_of(conversions_.coerce(array, arithmetic_type(to))), to, span);
  };
  result.is_exact = true;
  result.chosen = is_table ? array.table : array.chosen;
  result.remake = made;
  return result;
}

// Replaces operands by their quotients beside a float, or for an operator of reals. In a size, a
// bound of another size stays an integer.
std::vector<Value> Numbers::with_quotients(ScalarOp op, std::vector<Value> args) {
  const auto first = args.begin() + (op == ScalarOp::select ? 1 : 0);
  const auto is_size = [&](const Value& v) {
    return v.is_host() && pool().type(v.host) == HostType::Int && !pool().is_const(v.host);
  };
  const bool bounds_size = mode_.in_host && bounds(op) && std::any_of(first, args.end(), is_size);
  const bool meets_float = is_for_reals(op) || std::any_of(first, args.end(), [&](const Value& v) {
                             return types_.is_real(v);
                           });
  if (bounds_size || !meets_float) return args;
  std::transform(first, args.end(), first, [&](const Value& v) { return as_quotient(v); });
  return args;
}

// Converts a whole number, or a table of them, to floats.
Value Numbers::exact_as_float(const Value& value) {
  if (value.quotient != nullptr) return as_quotient(value);
  if (value.is_host()) return host_value(pool().cast(value.host, HostType::F64), value.span);
  Value table = value;
  for (HostExprId& element : table.table) element = pool().cast(element, HostType::F64);
  return table;
}

std::shared_ptr<const Value> Numbers::quotient_of(ScalarOp op, const std::vector<Value>& args,
                                                  const Value& result, Span span) {
  if (!keeps_quotient(op) || types_.is_real(result)) return nullptr;
  const bool is_new = divides(op) && !mode_.in_claim;
  std::vector<Value> floats;
  bool has_any = is_new;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Value& arg = args[i];
    const bool is_choice = op == ScalarOp::select && i == 0;
    if (arg.is_big || holds_big(arg) || (arg.declared && !mode_.in_host)) return nullptr;
    if (!is_choice && types_.own_dtype(arg) == kBool) return nullptr;
    has_any |= arg.quotient != nullptr;
    floats.push_back(is_choice ? arg : exact_as_float(arg));
  }
  if (!has_any) return nullptr;
  const bool is_table = result.kind == ValueKind::Table;
  const Value quotient =
      is_table ? as_table_op(op, floats, span) : host_scalar_op(op, floats, span);
  return quotient.is_error() ? nullptr : std::make_shared<const Value>(quotient);
}

// Floats divide without rounding, and a number computed in 32 bits may need more.
std::shared_ptr<const Remake> Numbers::remake_of(ScalarOp op, const std::vector<Value>& args,
                                                 Value result, Span span) {
  Remake made;
  // A typed integer that is not exact keeps only what a shift made of it.
  const bool is_adaptable = result.is_typed() && !result.is_exact;
  made.has_quotient = divides(op) && !is_adaptable;
  made.keeps_low_bits = is_adaptable || works_on_low_bits(op);
  made.holds_shift = op == ScalarOp::shl || (is_adaptable && op == ScalarOp::shr);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool is_choice = op == ScalarOp::select && i == 0;
    made.has_quotient |= !is_choice && !is_adaptable && has_quotient(args[i]) && keeps_quotient(op);
    made.holds_data |= is_choice && args[i].is_typed();
    made.holds_data |= args[i].remake != nullptr && args[i].remake->holds_data;
    made.holds_data |= args[i].is_typed() && !args[i].is_exact;
    made.holds_shift |= holds_shift(args[i]) && (is_adaptable || works_on_low_bits(op));
    made.has_fraction |= !is_choice && types_.has_fraction(args[i]) && keeps_quotient(op);
  }
  result.is_exact = false;
  result.remake.reset();
  const bool has_quotient = made.has_quotient;
  made.in_type = [this, op, args, result, span, has_quotient, is_adaptable](DType to) {
    const bool is_anew = is_float(to) ? has_quotient : is_adaptable || works_on_low_bits(op);
    if (!is_anew) return conversions_.convert(result, to, span);
    const DType type = arithmetic_type(to);
    std::vector<Value> operands = args;
    for (std::size_t i = op == ScalarOp::select ? 1 : 0; i < operands.size(); ++i) {
      const bool is_count = i == 1 && (op == ScalarOp::shl || op == ScalarOp::shr);
      operands[i] = is_count ? shift_count(operands[i], type)
                             : conversions_.coerce(as_operand(op, operands[i], type), type);
    }
    return conversions_.convert(
        all_.operators.typed_scalar_op(op, operands, span, scalar_op_info(op).name), to, span);
  };
  return std::make_shared<const Remake>(std::move(made));
}

// The host computes shifted sizes with 64 bits, whose low bits are not those of a shift in a
// narrower or unsigned type.
std::shared_ptr<const Remake> Numbers::host_remake(ScalarOp op, const std::vector<Value>& args,
                                                   const Value& result, Span span) {
  if (mode_.in_host || pool().is_const(result.host) || pool().type(result.host) != HostType::Int) {
    return nullptr;
  }
  const bool holds_shift = op == ScalarOp::shl || std::ranges::any_of(args, [](const Value& arg) {
                             return arg.remake != nullptr;
                           });
  if (!holds_shift || !works_on_low_bits(op)) return nullptr;
  Remake made = *remake_of(op, args, result, span);
  made.has_quotient = false;  // a number of the host keeps its quotient beside it
  return std::make_shared<const Remake>(std::move(made));
}

// Converts the count of a shift, any integer, to this type.
Value Numbers::shift_count(const Value& count, DType type) {
  if (types_.can_coerce(count, type)) return conversions_.coerce(count, type);
  const Value last = host_value(pool().const_int(type.bits - 1), count.span);
  return conversions_.convert(
      all_.operators.typed_scalar_op(ScalarOp::bit_and, {count, last}, count.span, "<<"), type,
      count.span);
}

std::vector<Value> Numbers::with_adaptables(ScalarOp op, std::vector<Value> args) {
  if (op == ScalarOp::shl || op == ScalarOp::shr) return args;
  const auto first = args.begin() + (op == ScalarOp::select ? 1 : 0);
  const bool meets_integer = std::any_of(first, args.end(), [&](const Value& arg) {
    const auto own = types_.own_dtype(arg);
    return own && is_int(*own) && !is_adaptable(arg);
  });
  if (!meets_integer) return args;
  std::for_each(first, args.end(), [](Value& arg) { arg.is_exact |= is_adaptable(arg); });
  return args;
}

// Computes the quotient together with the number, because its inputs may change later.
Value Numbers::named_quotient(const Value& value, Value read) {
  const Value quotient = build_.shared(value.remake->in_type(kF32), "quotient");
  read.is_exact = true;
  Value plain = read;
  plain.is_exact = false;
  Remake made{{}, true, false, false, types_.has_fraction(value)};
  made.in_type = [this, quotient, plain](DType to) {
    return conversions_.convert(is_float(to) ? quotient : plain, to, plain.span);
  };
  read.remake = std::make_shared<const Remake>(std::move(made));
  return read;
}

Value Numbers::as_named(const Value& value, Value read) {
  read.chosen = value.chosen;
  const bool holds_data = value.remake != nullptr && value.remake->holds_data;
  if (holds_data && value.remake->has_quotient) return named_quotient(value, read);
  read.is_exact = value.is_exact && !holds_data;
  if (!read.is_exact || value.remake == nullptr) return read;
  // A 64-bit integer can be converted, but its value as a float cannot be computed from it.
  const bool is_wide = value.type.dtype == kI64;
  if (is_wide && !value.remake->has_quotient) return read;
  Remake made = *value.remake;
  if (is_wide) {
    made.keeps_low_bits = false;
    Value plain = read;
    plain.is_exact = false;
    made.in_type = [this, anew = value.remake, plain](DType to) {
      return is_float(to) ? anew->in_type(to) : conversions_.convert(plain, to, plain.span);
    };
  }
  read.remake = std::make_shared<const Remake>(std::move(made));
  return read;
}

// An `if` on the device with a branch that is recomputed in the type that it needs: the choice then
// has this type, too.
std::shared_ptr<const Remake> Numbers::branch_remake(const Value& test,
                                                     std::span<const Value> branches, Value result,
                                                     Span span) {
  const bool has_quotients =
      result.is_exact && (has_quotient(branches[0]) || has_quotient(branches[1]));
  Remake made{{}, has_quotients, true, holds_shift(branches[0]) || holds_shift(branches[1])};
  made.has_fraction = types_.has_fraction(branches[0]) || types_.has_fraction(branches[1]);
  made.keeps_low_bits = true;
  result.is_exact = false;
  made.in_type = [this, test, a = branches[0], b = branches[1], result, span,
                  has_quotients](DType to) {
    if (is_float(to) && !has_quotients) return conversions_.convert(result, to, span);
    const DType type = is_float(to) ? to : arithmetic_type(to);
    Expr choice{ExprKind::If, result.type, span};
    choice.type.dtype = type;
    choice.args = {test.expr, conversions_.coerce(as_low_bits(a, type), type).expr,
                   conversions_.coerce(as_low_bits(b, type), type).expr};
    return conversions_.convert(build_.typed(std::move(choice)), to, span);
  };
  return std::make_shared<const Remake>(std::move(made));
}

std::shared_ptr<const Remake> Numbers::array_remake(const std::vector<Value>& elements,
                                                    const Value& array, Span span) {
  Remake made{{}, false, true};
  made.keeps_low_bits = true;
  for (const Value& element : elements) {
    made.has_quotient |= has_quotient(element);
    made.has_fraction |= types_.has_fraction(element);
    made.holds_shift |= holds_shift(element);
  }
  made.in_type = [this, elements, array, span](DType to) -> Value {
    const DType type = arithmetic_type(to);
    Expr again{ExprKind::Table, array.type, span};
    again.type.dtype = type;
    for (const Value& element : elements) {
      const Value number = FOUND(conversions_.coerce(as_low_bits(element, type), type));
      again.args.push_back(number.expr);
    }
    return conversions_.convert(build_.typed(std::move(again)), to, span);
  };
  return std::make_shared<const Remake>(std::move(made));
}

Value Numbers::with_table_quotient(Value table, const std::vector<Value>& elements) {
  if (std::ranges::none_of(elements, [](const Value& e) { return has_quotient(e); })) return table;
  Value floats = table;
  floats.table.clear();
  floats.big_elements.clear();
  bool is_float = false;
  for (const Value& element : elements) {
    is_float |= types_.is_real(element);
    const Value real = as_quotient(element);
    if (real.is_host()) add_element(floats, real.host, real.is_big);
    for (std::size_t i = 0; i < real.table.size(); ++i) {
      add_element(floats, real.table[i], real.big_elements[i]);
    }
  }
  if (is_float) return floats;
  table.quotient = std::make_shared<const Value>(std::move(floats));
  return table;
}

Value Numbers::without_quotient(Value value) {
  value.quotient.reset();
  if (!value.is_typed() || !value.is_exact || !has_quotient(value)) return value;
  Value plain = value;
  plain.is_exact = false;
  plain.remake.reset();
  Remake made = *value.remake;
  made.has_quotient = made.has_fraction = false;
  made.in_type = [this, anew = value.remake, plain](DType to) {
    return is_float(to) ? conversions_.convert(plain, to, plain.span) : anew->in_type(to);
  };
  value.remake = std::make_shared<const Remake>(std::move(made));
  return value;
}

// If only the low bits count, a negative number has those of its two's complement.
Value Numbers::as_operand(ScalarOp op, const Value& value, DType type) {
  const bool is_on_bits =
      op == ScalarOp::bit_and || op == ScalarOp::bit_or || op == ScalarOp::bit_xor;
  const bool is_equality = op == ScalarOp::eq || op == ScalarOp::ne;
  Value mask = is_on_bits ? as_mask(value, type) : value;
  if (works_on_low_bits(op) || is_equality) return as_low_bits(mask, type);
  // A computed exact number in this type. In an unsigned type a negative number becomes 0.
  const bool is_signed = mask.is_typed() && mask.is_exact && is_signed_int(mask.type.dtype);
  if (!is_signed || !is_unsigned_int(type) || holds_shift(mask)) return mask;
  const bool is_every = std::ranges::all_of(mask.chosen, [&](HostExprId number) {
    return fits(pool().const_value(number).as_int(), type);
  });
  return is_every ? conversions_.convert(conversions_.materialize(mask), type, mask.span) : mask;
}

}  // namespace cinch::sema
