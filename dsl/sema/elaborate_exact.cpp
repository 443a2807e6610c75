// Exact numbers: what was divided and meets floats is a quotient, and what is made of literals and
// loop variables is made in the type that it meets.
#include <algorithm>
#include <cmath>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

namespace {

// Operators whose quotient is that of their operands' quotients.
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

// The low bits of the result are those of the operands' low bits.
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

bool Elaborator::holds_shift(const Value& value) {
  return value.remake != nullptr && value.remake->holds_shift;
}

bool Elaborator::has_quotient(const Value& value) {
  return value.quotient != nullptr || (value.remake != nullptr && value.remake->has_quotient);
}

// The quotient of a number of the host where there is one.
Value Elaborator::as_quotient(const Value& value) {
  if (value.quotient == nullptr) return value;
  Value quotient = *value.quotient;
  quotient.span = value.span;
  return quotient;
}

// Is one of its constants a quotient with a fraction?
bool Elaborator::has_fraction(const Value& value) {
  const auto is_fraction = [&](HostExprId number) {
    if (!pool().is_const(number) || pool().type(number) != HostType::F64) return false;
    const double real = pool().const_value(number).to_double();
    return std::isfinite(real) && real != std::trunc(real);
  };
  if (value.is_typed()) {
    return value.is_exact && value.remake != nullptr && value.remake->has_fraction;
  }
  if (value.quotient == nullptr) return false;
  const Value& quotient = *value.quotient;
  return quotient.is_host() ? is_fraction(quotient.host)
                            : std::ranges::any_of(quotient.table, is_fraction);
}

// An operand that meets nothing that would say what a quotient is: one with a fraction stays it.
Value Elaborator::unmet(const Value& value) {
  return has_fraction(value) ? coerce(value, kF32) : materialize(value);
}

std::vector<Value> Elaborator::unmet_together(std::vector<Value> values) {
  const bool meets_type =
      std::ranges::any_of(values, [&](const Value& v) { return own_dtype(v).has_value(); });
  const bool has_any = std::ranges::any_of(values, [&](const Value& v) { return has_fraction(v); });
  if (meets_type || !has_any) return values;
  for (Value& value : values) value = coerce(value, kF32);
  return values;
}

Value Elaborator::made_of_exact(const Value& array, Span span,
                                const std::function<Value(const Value&)>& made_of) {
  const bool is_table = array.kind == ValueKind::Table;
  const bool is_anew = is_table || (array.is_exact && array.remake != nullptr);
  Value result = made_of(materialize(array));
  const bool is_exact =
      is_anew && result.is_typed() && is_int(result.type.dtype) && !holds_big(array);
  if (!is_exact) return result;
  const Value plain = result;
  const auto made = std::make_shared<Remake>(Remake{{}, has_quotient(array), true});
  made->holds_shift = holds_shift(array);
  made->has_fraction = has_fraction(array);
  made->in_type = [this, array, made_of, plain, span](DType to) {
    if (is_bool(to)) return convert(plain, to, span);
    return convert(made_of(coerce(array, arithmetic_type(to))), to, span);
  };
  result.is_exact = true;
  result.chosen = is_table ? array.table : array.chosen;
  result.remake = made;
  return result;
}

// Operands that meet a float, or an operator of reals, as the quotients that they are. In a size
// what bounds another size stays a whole number.
std::vector<Value> Elaborator::with_quotients(ScalarOp op, std::vector<Value> args) {
  const auto first = args.begin() + (op == ScalarOp::select ? 1 : 0);
  const auto is_size = [&](const Value& v) {
    return v.is_host() && pool().type(v.host) == HostType::Int && !pool().is_const(v.host);
  };
  const bool bounds_size = in_host_ && bounds(op) && std::any_of(first, args.end(), is_size);
  const bool meets_float = is_for_reals(op) || std::any_of(first, args.end(), [&](const Value& v) {
                             return is_real(v);
                           });
  if (bounds_size || !meets_float) return args;
  std::transform(first, args.end(), first, [&](const Value& v) { return as_quotient(v); });
  return args;
}

// A whole number, or a table of some, as floats.
Value Elaborator::exact_as_float(const Value& value) {
  if (value.quotient != nullptr) return as_quotient(value);
  if (value.is_host()) return host(pool().cast(value.host, HostType::F64), value.span);
  Value table = value;
  for (HostExprId& element : table.table) element = pool().cast(element, HostType::F64);
  return table;
}

// What `result`, of whole numbers on the host, is where it meets floats.
std::shared_ptr<const Value> Elaborator::quotient_of(ScalarOp op, const std::vector<Value>& args,
                                                     const Value& result, Span span) {
  if (!keeps_quotient(op) || is_real(result)) return nullptr;
  const bool is_new = divides(op) && !in_claim_;
  std::vector<Value> floats;
  bool has_any = is_new;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const Value& arg = args[i];
    const bool is_choice = op == ScalarOp::select && i == 0;
    if (arg.is_big || holds_big(arg) || (arg.declared && !in_host_)) return nullptr;
    if (!is_choice && own_dtype(arg) == kBool) return nullptr;
    has_any |= arg.quotient != nullptr;
    floats.push_back(is_choice ? arg : exact_as_float(arg));
  }
  if (!has_any) return nullptr;
  const bool is_table = result.kind == ValueKind::Table;
  const Value quotient =
      is_table ? as_table_op(op, floats, span) : host_scalar_op(op, floats, span);
  return quotient.is_error() ? nullptr : std::make_shared<const Value>(quotient);
}

// The same operation in the type that its result meets, where a conversion of the result would give
// another number: floats divide, and what has 32 bits may need more.
std::shared_ptr<const Remake> Elaborator::remake_of(ScalarOp op, const std::vector<Value>& args,
                                                    Value result, Span span) {
  Remake made;
  // Of an integer that is none it keeps what a shift made it.
  const bool is_adaptable = result.is_typed() && !result.is_exact;
  made.has_quotient = divides(op) && !is_adaptable;
  made.holds_shift = op == ScalarOp::shl || (is_adaptable && op == ScalarOp::shr);
  for (std::size_t i = 0; i < args.size(); ++i) {
    const bool is_choice = op == ScalarOp::select && i == 0;
    made.has_quotient |= !is_choice && !is_adaptable && has_quotient(args[i]) && keeps_quotient(op);
    made.holds_data |= is_choice && args[i].is_typed();
    made.holds_data |= args[i].remake != nullptr && args[i].remake->holds_data;
    made.holds_data |= args[i].is_typed() && !args[i].is_exact;
    made.holds_shift |= holds_shift(args[i]) && (is_adaptable || works_on_low_bits(op));
    made.has_fraction |= !is_choice && has_fraction(args[i]) && keeps_quotient(op);
  }
  result.is_exact = false;
  result.remake.reset();
  const bool has_quotient = made.has_quotient;
  made.in_type = [this, op, args, result, span, has_quotient, is_adaptable](DType to) {
    const bool is_anew = is_float(to) ? has_quotient : is_adaptable || works_on_low_bits(op);
    if (!is_anew) return convert(result, to, span);
    const DType type = arithmetic_type(to);
    std::vector<Value> operands = args;
    for (std::size_t i = op == ScalarOp::select ? 1 : 0; i < operands.size(); ++i) {
      const bool is_count = i == 1 && (op == ScalarOp::shl || op == ScalarOp::shr);
      operands[i] = is_count ? shift_count(operands[i], type)
                             : coerce(as_operand(op, operands[i], type), type);
    }
    return convert(typed_scalar_op(op, operands, span, scalar_op_info(op).name), to, span);
  };
  return std::make_shared<const Remake>(std::move(made));
}

// A size that was shifted, or is made of one: the host has 64 bits of it, the low ones of which are
// not what a shift in a narrower or unsigned type gives.
std::shared_ptr<const Remake> Elaborator::host_remake(ScalarOp op, const std::vector<Value>& args,
                                                      const Value& result, Span span) {
  if (in_host_ || pool().is_const(result.host) || pool().type(result.host) != HostType::Int) {
    return nullptr;
  }
  const bool holds_shift = op == ScalarOp::shl || std::ranges::any_of(args, [](const Value& arg) {
                             return arg.remake != nullptr;
                           });
  if (!holds_shift || !works_on_low_bits(op)) return nullptr;
  Remake made = *remake_of(op, args, result, span);
  made.has_quotient = false;  // that of a number of the host stands beside it
  return std::make_shared<const Remake>(std::move(made));
}

// An integer whose type is that of a shift count, as nothing else was met: it still takes the type
// that it meets.
bool Elaborator::is_adaptable(const Value& value) {
  return value.is_typed() && !value.is_exact && value.remake != nullptr;
}

// The count of a shift in this type, whatever integer it is.
Value Elaborator::shift_count(const Value& count, DType type) {
  if (can_coerce(count, type)) return coerce(count, type);
  const Value last = host(pool().const_int(type.bits - 1), count.span);
  return convert(typed_scalar_op(ScalarOp::bit_and, {count, last}, count.span, "<<"), type,
                 count.span);
}

// Where an integer with a type of its own is met, the others of which that of a shift count is all
// that is known are exact numbers.
std::vector<Value> Elaborator::with_adaptables(ScalarOp op, std::vector<Value> args) {
  if (op == ScalarOp::shl || op == ScalarOp::shr) return args;
  const auto first = args.begin() + (op == ScalarOp::select ? 1 : 0);
  const bool meets_integer = std::any_of(first, args.end(), [&](const Value& arg) {
    const auto own = own_dtype(arg);
    return own && is_int(*own) && !is_adaptable(arg);
  });
  if (!meets_integer) return args;
  std::for_each(first, args.end(), [](Value& arg) { arg.is_exact |= is_adaptable(arg); });
  return args;
}

// Is the result of an operator on these such an integer?
bool Elaborator::stays_adaptable(ScalarOp op, std::span<const Value> args) {
  const auto is_number = [&](const Value& arg) {
    const bool has_no_type = !own_dtype(arg) && !holds_big(arg);
    return (has_no_type && !is_real(arg)) || is_adaptable(arg);
  };
  if (op == ScalarOp::shl || op == ScalarOp::shr) {
    return is_number(args[0]) && (is_adaptable(args[0]) || own_dtype(args[1]).has_value());
  }
  const bool is_of_integers = scalar_op_info(op).result == ScalarResult::Same && !is_for_reals(op);
  const std::span<const Value> joined = args.subspan(op == ScalarOp::select ? 1 : 0);
  return is_of_integers && std::ranges::all_of(joined, is_number) &&
         std::ranges::any_of(joined, [&](const Value& arg) { return is_adaptable(arg); });
}

// The quotient is computed where the number is: later its data may have changed.
Value Elaborator::named_quotient(const Value& value, Value read) {
  const Value quotient = shared(value.remake->in_type(kF32), "quotient");
  read.is_exact = true;
  Value plain = read;
  plain.is_exact = false;
  Remake made{{}, true, false, false, has_fraction(value)};
  made.in_type = [this, quotient, plain](DType to) {
    return convert(is_float(to) ? quotient : plain, to, plain.span);
  };
  read.remake = std::make_shared<const Remake>(std::move(made));
  return read;
}

// What a name stands for of an exact number that was computed: made anew it must be the same.
Value Elaborator::as_named(const Value& value, Value read) {
  read.chosen = value.chosen;
  const bool holds_data = value.remake != nullptr && value.remake->holds_data;
  if (holds_data && value.remake->has_quotient) return named_quotient(value, read);
  read.is_exact = value.is_exact && !holds_data;
  if (!read.is_exact || value.remake == nullptr) return read;
  // Whole numbers of 64 bits convert; only what they are as floats is not known from them.
  const bool is_wide = value.type.dtype == kI64;
  if (is_wide && !value.remake->has_quotient) return read;
  Remake made = *value.remake;
  if (is_wide) {
    Value plain = read;
    plain.is_exact = false;
    made.in_type = [this, anew = value.remake, plain](DType to) {
      return is_float(to) ? anew->in_type(to) : convert(plain, to, plain.span);
    };
  }
  read.remake = std::make_shared<const Remake>(std::move(made));
  return read;
}

// `if` on the device, of which a branch is made in the type that it meets: of such a type the
// choice is one.
std::shared_ptr<const Remake> Elaborator::branch_remake(const Value& test,
                                                        std::span<const Value> branches,
                                                        Value result, Span span) {
  const bool has_quotients =
      result.is_exact && (has_quotient(branches[0]) || has_quotient(branches[1]));
  Remake made{{}, has_quotients, true, holds_shift(branches[0]) || holds_shift(branches[1])};
  made.has_fraction = has_fraction(branches[0]) || has_fraction(branches[1]);
  result.is_exact = false;
  made.in_type = [this, test, a = branches[0], b = branches[1], result, span,
                  has_quotients](DType to) {
    if (is_float(to) && !has_quotients) return convert(result, to, span);
    const DType type = is_float(to) ? to : arithmetic_type(to);
    Expr choice{ExprKind::If, result.type, span};
    choice.type.dtype = type;
    choice.args = {test.expr, coerce(as_low_bits(a, type), type).expr,
                   coerce(as_low_bits(b, type), type).expr};
    return convert(typed(std::move(choice)), to, span);
  };
  return std::make_shared<const Remake>(std::move(made));
}

// An array of exact numbers, not all of them constants.
std::shared_ptr<const Remake> Elaborator::array_remake(const std::vector<Value>& elements,
                                                       const Value& array, Span span) {
  Remake made{{}, false, true};
  for (const Value& element : elements) {
    made.has_quotient |= has_quotient(element);
    made.has_fraction |= has_fraction(element);
    made.holds_shift |= holds_shift(element);
  }
  made.in_type = [this, elements, array, span](DType to) {
    const DType type = arithmetic_type(to);
    Expr again{ExprKind::Table, array.type, span};
    again.type.dtype = type;
    for (const Value& element : elements) {
      const Value number = coerce(as_low_bits(element, type), type);
      if (number.is_error()) return error(span);
      again.args.push_back(number.expr);
    }
    return convert(typed(std::move(again)), to, span);
  };
  return std::make_shared<const Remake>(std::move(made));
}

// A table of which some elements are quotients.
Value Elaborator::with_table_quotient(Value table, const std::vector<Value>& elements) {
  if (std::ranges::none_of(elements, [](const Value& e) { return has_quotient(e); })) return table;
  Value floats = table;
  floats.table.clear();
  floats.big_elements.clear();
  bool is_float = false;
  for (const Value& element : elements) {
    is_float |= is_real(element);
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

// The whole number that is cut, whatever it meets.
Value Elaborator::without_quotient(Value value) {
  value.quotient.reset();
  if (!value.is_typed() || !value.is_exact || !has_quotient(value)) return value;
  Value plain = value;
  plain.is_exact = false;
  plain.remake.reset();
  Remake made = *value.remake;
  made.has_quotient = made.has_fraction = false;
  made.in_type = [this, anew = value.remake, plain](DType to) {
    return is_float(to) ? convert(plain, to, plain.span) : anew->in_type(to);
  };
  value.remake = std::make_shared<const Remake>(std::move(made));
  return value;
}

// An exact number as an operand of an operator of this type: where the low bits are all that
// counts, what is negative has those of its two's complement.
Value Elaborator::as_operand(ScalarOp op, const Value& value, DType type) {
  const bool is_on_bits =
      op == ScalarOp::bit_and || op == ScalarOp::bit_or || op == ScalarOp::bit_xor;
  const bool is_equality = op == ScalarOp::eq || op == ScalarOp::ne;
  const Value mask = is_on_bits ? as_mask(value, type) : value;
  return works_on_low_bits(op) || is_equality ? as_low_bits(mask, type) : as_natural(mask, type);
}

// An exact number that was computed: what is negative counts as 0 in an unsigned type.
Value Elaborator::as_natural(const Value& value, DType type) {
  const bool is_signed = value.is_typed() && value.is_exact && is_signed_int(value.type.dtype);
  if (!is_signed || !is_unsigned_int(type) || holds_shift(value)) return value;
  const bool is_every = std::ranges::all_of(value.chosen, [&](HostExprId number) {
    return fits(pool().const_value(number).as_int(), type);
  });
  return is_every ? convert(materialize(value), type, value.span) : value;
}

}  // namespace cinch::sema
