// map, fill, len and floor_div.
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/operators/operators.h"

namespace cinch::sema {
using dsl::DiagKind;

Value Operators::map_call(const CallArgs& args) {
  std::vector<Value> arrays;
  std::vector<Type> params;
  std::vector<ExprId> operands;
  for (std::size_t i = 0; i + 1 < args.positional.size(); ++i) {
    arrays.push_back(all_.calls.operand(args.positional[i]));
    if (arrays.back().is_error()) return error_value(args.span);
    params.push_back(scalar_type(arrays.back().type.dtype));
  }
  const auto shape = FOUND(broadcast(arrays, args.span, "map"));
  operands.reserve(arrays.size() + 1);
  for (const Value& array : arrays) operands.push_back(as_row(array, shape).expr);
  const Value body =
      all_.exprs.lambda(args.positional.back(), params, args.name,
                        [&](const Value& value) { return conversions_.unmet(value); });
  if (body.is_error()) return error_value(args.span);
  operands.push_back(body.expr);
  Type type = shape;
  type.dtype = body.type.dtype;
  return build_.builtin(BuiltinId::map, type, std::move(operands), args.span);
}

Value Operators::fill_call(const CallArgs& args) {
  const Value value = FOUND(all_.exprs.expr(args.positional[0]));
  const bool takes_shape = args.positional.size() == 1 && mode_.wanted != nullptr;
  if (args.positional.size() == 1 && !takes_shape)
    return mistake<DiagKind::MissingArgument>(args.span, "fill", "a size");
  Value v = FOUND(takes_shape ? conversions_.coerce(value, mode_.wanted->dtype)
                              : conversions_.unmet(value));
  if (!v.is_typed() || v.type.rank != 0)
    return mistake<DiagKind::BadType>(value.span, "a number to repeat", text_.describe(value));
  if (takes_shape) return build_.builtin(BuiltinId::fill, *mode_.wanted, {v.expr}, args.span);
  const auto size = FOUND(all_.calls.size_arg(args.positional[1], args.name));
  return build_.builtin(BuiltinId::fill, vector_type(v.type.dtype, size), {v.expr}, args.span,
                        [&](Expr& e) { e.size = size; });
}

// The number of elements of a vector, or of rows of a matrix.
Value Operators::len_call(const CallArgs& args) {
  Value x = FOUND(all_.exprs.expr(args.positional[0]));
  const Type type = types_.value_type(x);
  const bool is_array = (x.is_typed() || x.kind == ValueKind::Table) && type.rank > 0;
  if (!is_array)
    return error_value(reporter_.report<DiagKind::CannotApply>(x.span, "len", text_.describe(x))
                           .note("it takes an array"));
  // The number may be used without the array, but the array has to be computed for it.
  if (build_.holds_filter(x)) build_.shared(x, "counted");
  return host_value(type.dims[0], args.span);
}

// Computes the quotient rounded down from the quotient rounded toward zero and the remainder.
Value Operators::floor_div_call(const CallArgs& args) {
  const Span span = args.span;
  const Value a = all_.numbers.without_quotient(all_.exprs.expr(args.positional[0]));
  const Value b = all_.numbers.without_quotient(all_.exprs.expr(args.positional[1]));
  if (a.is_error() || b.is_error()) return error_value(span);
  Value result = all_.numbers.floor_div_of(a, b, args.name, span);
  const bool is_made = result.is_typed() && !result.is_exact && is_int(result.type.dtype);
  if (!is_made || !types_.stays_adaptable(ScalarOp::div, std::vector{a, b})) return result;
  Remake made{{}, false, true, true};
  made.in_type = [this, a, b, name = args.name, result, span](DType to) {
    if (!is_int(to)) return conversions_.convert(result, to, span);
    const DType type = arithmetic_type(to);
    return conversions_.convert(all_.numbers.floor_div_of(conversions_.coerce(a, type),
                                                          conversions_.coerce(b, type), name, span),
                                to, span);
  };
  result.remake = std::make_shared<const Remake>(std::move(made));
  return result;
}

// `@`, orthonormalize and hadamard.

Value Operators::outer_call(const CallArgs& args) {
  std::vector<Value> sides = conversions_.unmet_together(
      {all_.exprs.expr(args.positional[0]), all_.exprs.expr(args.positional[1])});
  const auto dtype = types_.meet(sides[0], sides[1]);
  for (Value& side : sides) {
    if (side.is_error()) return side;
    const Value made =
        FOUND(dtype ? conversions_.coerce(side, *dtype) : conversions_.materialize(side));
    if (!made.is_typed() || made.type.rank != 1)
      return mistake<DiagKind::NeedsVector>(side.span, args.name, text_.describe(side));
    side = FOUND(all_.calls.check_lambda_array(made));
  }
  const HostExprId rows = sides[0].type.dims[0], one = pool().const_int(1);
  const Value column = reshaped(sides[0], matrix_type(sides[0].type.dtype, rows, one), args.span);
  return scalar_op(ScalarOp::mul, {column, as_row(sides[1], column.type)}, args.span, args.name);
}

Value Operators::matmul(const Value& a_in, const Value& b_in, Span span) {
  const std::vector<Value> sides = conversions_.unmet_together({a_in, b_in});
  Value a = conversions_.materialize(sides[0]), b = conversions_.materialize(sides[1]);
  for (const Value* side : {&a, &b}) {
    if (side->is_error()) return error_value(span);
    if (!side->is_typed() || side->type.rank != 2) {
      auto& diag = reporter_.report<DiagKind::NeedsMatrix>(side->span, "@", text_.describe(*side));
      if (side->is_typed() && side->type.rank == 1) {
        diag.note(
            "a vector beside it is a row or a column: `reshape(v, 1, len(v))`, "
            "`reshape(v, len(v), 1)`; `dot(m, v, axis: 1)` multiplies each row by v");
      }
      return error_value(span);
    }
    if (all_.calls.check_lambda_array(*side).is_error()) return error_value(span);
  }
  const auto dtype = types_.meet(a, b);
  if (!dtype || !prover_.proves_equal(a.type.dims[1], b.type.dims[0])) {
    return cannot_combine("@", a, b, span);
  }
  if (!is_known_line(a, 1, "@")) return error_value(span);
  a = conversions_.coerce(a, *dtype);
  b = conversions_.coerce(b, *dtype);
  return build_.builtin(BuiltinId::matmul, matrix_type(*dtype, a.type.dims[0], b.type.dims[1]),
                        {a.expr, b.expr}, span);
}

Value Operators::matrix_call(const CallArgs& args) {
  const bool is_hadamard = args.id == BuiltinId::hadamard;
  Value x = FOUND(is_hadamard ? all_.calls.array_operand(args.positional[0], args.name)
                              : all_.calls.matrix_operand(args.positional[0], args.name));
  x = FOUND(conversions_.as_float(x, args.name));
  const Type type = x.type;
  if (!is_hadamard) {
    const bool is_known = is_known_line(x, 0, args.name) && is_known_line(x, 1, args.name);
    if (!is_known) return error_value(args.span);
    return build_.builtin(args.id, type, {x.expr}, args.span);
  }
  if (!is_known_line(x, type.rank - 1, args.name)) return error_value(args.span);
  const HostExprId len = type.dims[type.rank - 1];
  const HostExprId one = pool().const_int(1), zero = pool().const_int(0);
  const HostExprId low_bits = pool().make(HostOp::BitAnd, len, pool().sub(len, one));
  const HostExprId is_power = pool().make(HostOp::And, pool().make(HostOp::Gt, len, zero),
                                          pool().make(HostOp::Eq, low_bits, zero));
  build_.require(
      is_power, "the length " + sizes_.size_text(len) + " of a row of `hadamard` is a power of two",
      args.span);
  if (type.rank == 1) x = reshaped(x, matrix_type(type.dtype, one, len), args.span);
  return reshaped(build_.builtin(args.id, x.type, {x.expr}, args.span), type, args.span);
}

// The numbers of draws, random arrays and stochastic rounding.

namespace {

// Numbers of call sites within one compressor. encode and decode count from 0, the others from
// numbers that those do not reach.
constexpr std::uint32_t kFinishSites = 0x8000, kInitSites = 0xc000, kSitesOfOne = 0x2000;
constexpr std::uint32_t kStreams = 0x80000000u;

}  // namespace

void Operators::number_draw(Expr& made, const CallArgs& args) {
  // An encode in finish draws the same numbers on all ranks. Draws that it shares anyway keep the
  // numbers with which its decode draws the same.
  const bool is_written_shared = all_.calls.flag(args, "shared");
  const bool is_owners = mode_.encodes_in_finish && !is_written_shared;
  made.shared = is_written_shared || is_owners;
  if (mode_.body == BodyKind::Decode && !made.shared) {
    reporter_.report<DiagKind::DrawNotShared>(args.span);
  }
  if (mode_.body == BodyKind::Decode) out_.info.decode_draws = true;
  const auto stream = args.named.find("stream");
  if (stream != args.named.end()) {
    const auto number = all_.numbers.constant_int(stream->second->value);
    if (number && (*number < 0 || *number >= std::int64_t{kStreams})) {
      reporter_.report<DiagKind::OutOfRange>(stream->second->span,
                                             "stream " + std::to_string(*number), "0 to 2^31 - 1");
    }
    made.stream = kStreams + static_cast<std::uint32_t>(number.value_or(0));
    return;
  }
  Instance* const instance = env_->draw_instance;
  std::uint32_t unowned = 0;
  const bool counts_shared = is_written_shared && mode_.body != BodyKind::StateInit;
  std::uint32_t& next = counts_shared         ? env_->shared_draws
                        : instance != nullptr ? instance->own_draws
                                              : unowned;
  const bool is_early = mode_.body == BodyKind::Encode || mode_.body == BodyKind::Decode ||
                        mode_.body == BodyKind::Sync ||
                        (mode_.encodes_in_finish && is_written_shared);
  const std::uint32_t limit = is_early ? kFinishSites : kSitesOfOne;
  if (next >= limit) {
    reporter_.report<DiagKind::TooMany>(args.span, std::to_string(limit),
                                        "draws in one compressor");
  }
  const std::uint32_t number = instance == nullptr ? 0 : instance->number;
  const std::uint32_t first = is_early                            ? 0
                              : is_owners                         ? kOwnerSites
                              : mode_.body == BodyKind::Finish    ? kFinishSites
                              : mode_.body == BodyKind::StateInit ? kInitSites
                                                                  : 0;
  made.site = (number << 16) + first + next++;
  if (counts_shared) made.index = env_->method;
}

Value Operators::random_call(const CallArgs& args) {
  const bool is_index = args.id == BuiltinId::random_index;
  const DType dtype = is_index || args.id == BuiltinId::random_bits ? kU32 : kF32;
  Type type;
  HostExprId size;
  if (!args.positional.empty()) {
    size = FOUND(all_.calls.size_arg(args.positional[0], args.name));
    type = vector_type(dtype, size);
    if (is_by_rows()) {
      type = matrix_type(dtype, env_->instance->rows, size);
      size = sizes_.num_elems(type);
    }
  } else if (mode_.wanted != nullptr && mode_.wanted->rank > 0) {
    type = *mode_.wanted;
    type.dtype = dtype;
    size = sizes_.num_elems(type);
  } else {
    return mistake<DiagKind::MissingArgument>(args.span, args.name, "a size");
  }
  IndexFacts facts;
  if (is_index) {
    const auto below = FOUND(all_.calls.named_size(args, "size"));
    build_.require_at_most(size, below, "`random_index` draws at most " + sizes_.size_text(below),
                           args.span);
    size = below;
    facts = {true, false, below};
  }
  if (mode_.lambda_depth > 0 && !sizes_.all_constant_sizes(type))
    return mistake<DiagKind::ArrayInLambda>(args.span, sizes_.type_text(type));
  Value result = build_.builtin(args.id, type, {}, args.span, [&](Expr& e) {
    e.size = size;
    number_draw(e, args);
  });
  result.facts = facts;
  return result;
}

Value Operators::stochastic_round_call(const CallArgs& args) {
  Value value = FOUND(all_.exprs.expr(args.positional[0]));
  const Value x = conversions_.as_float(value, args.name);
  if (x.is_error() || all_.calls.check_lambda_array(x).is_error()) return error_value(args.span);
  return build_.builtin(BuiltinId::stochastic_round, x.type, {x.expr}, args.span,
                        [&](Expr& e) { number_draw(e, args); });
}

// Scatters into vectors, and into the rows of a matrix.

Value Operators::scatter_call(const CallArgs& args) {
  const auto at_arg = args.named.find("at");
  if (at_arg == args.named.end())
    return mistake<DiagKind::MissingArgument>(args.span, args.name, "`at:`");
  Scatter how{args.id};
  if (const auto keep = args.named.find("keep"); keep != args.named.end()) {
    const auto which = FOUND(all_.calls.word(keep->second->value, {"first", "last"}));
    how.keep = which == "first" ? Keep::First : Keep::Last;
  }
  const Value v = all_.calls.operand(args.positional[0]);
  const Value at = all_.exprs.as_index(all_.calls.operand(at_arg->second->value));
  const auto size = all_.calls.named_size(args, "size");
  if (v.is_error() || at.is_error() || !size) return error_value(args.span);
  if (at.type.rank == 2) {
    // Nothing proves that the indices of a payload's row do not repeat.
    const bool is_known = at.facts.unique_in_rows && at.facts.assumed == 0;
    const bool may_repeat = is_by_rows() && !is_known;
    if (may_repeat && how.needs_unique()) how.id = BuiltinId::scatter_add;
    return scatter_rows(how, v, at, *size, args.span);
  }
  if (at.type.rank != 1) return mistake<DiagKind::NeedsVector>(at.span, "at:", text_.describe(at));
  if (v.type.rank > 0 && !prover_.proves_equal(v.type.dims[0], at.type.dims[0])) {
    return cannot_combine(args.name, v, at, args.span, false);
  }
  return scatter_at(how, v, at, *size, args.span);
}

Value Operators::scatter_at(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                            Span span, bool in_rows) {
  const auto report = [this, place = at.span] {
    reporter_.report<DiagKind::IndexMayRepeat>(place).note(
        "`scatter_add` takes indices that repeat, and `keep: last` says which value stays");
  };
  if (how.needs_unique() && !all_.facts.holds(at.facts.unique, at.facts, report)) {
    return error_value(span);
  }
  const bool is_unique = how.needs_unique() || (at.facts.unique && at.facts.assumed == 0);
  const Value values = FOUND(how.id == BuiltinId::scatter ? v : conversions_.arithmetic(v));
  Type type = vector_type(values.type.dtype, size);
  if (v.type.rank == 2) type = matrix_type(values.type.dtype, size, v.type.dims[1]);
  return build_.builtin(how.id, type, {values.expr, at.expr}, span, [&](Expr& e) {
    e.size = size;
    e.keep = is_unique ? Keep::Only : how.keep;
    e.proved_unique = is_unique;
    e.proved_in_bounds = all_.facts.is_in_bounds(at, size);
    if (in_rows) e.axis = 1;
  });
}

// With a matrix of column numbers, each row of values is scattered into a row of `size` elements.
Value Operators::scatter_rows(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                              Span span) {
  const bool fits = v.type.rank == 0 ||
                    (v.type.rank == 2 && prover_.proves_equal(v.type.dims[0], at.type.dims[0]) &&
                     prover_.proves_equal(v.type.dims[1], at.type.dims[1]));
  if (!fits) return cannot_combine(builtin_info(how.id).name, v, at, span, false);
  const HostExprId rows = at.type.dims[0];
  Value place = FOUND(all_.exprs.places_in_rows(at, size, span));
  place.span = at.span;
  const Value values =
      v.type.rank == 0 ? v : reshaped(v, vector_type(v.type.dtype, sizes_.num_elems(v.type)), span);
  const Value flat = scatter_at(how, values, place, pool().mul(rows, size), span, true);
  return flat.is_error() ? flat : reshaped(flat, matrix_type(flat.type.dtype, rows, size), span);
}

}  // namespace cinch::sema
