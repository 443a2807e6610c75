// Concatenation, reshapes, packing, iota and histogram.
#include "dsl/sema/operators/operators.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Operators::pack_call(const CallArgs& args) {
  const Value x = all_.calls.vector_operand(args.positional[0], args.name);
  const auto bits_arg = args.named.find("bits");
  if (bits_arg == args.named.end())
    return mistake<DiagKind::MissingArgument>(args.span, args.name, "`bits:`");
  const auto bits = all_.numbers.constant_int(bits_arg->second->value);
  if (x.is_error() || !bits) return error_value(args.span);
  const auto element = make_uint(*bits);
  if (!element) return mistake<DiagKind::BadWidth>(bits_arg->second->span, "uint", *bits);
  const bool is_pack = args.id == BuiltinId::pack;
  const bool fits = is_pack ? is_int(x.type.dtype) || is_bool(x.type.dtype) : x.type.dtype == kU8;
  if (!fits)
    return error_value(reporter_.report<DiagKind::CannotApply>(x.span, args.name, text_.describe(x))
                           .note(is_pack ? "it takes integers" : "it takes [u8; …]"));
  const HostExprId width = pool().const_int(*bits), byte = pool().const_int(8);
  const HostExprId len = x.type.dims[0];
  if (is_pack) {
    const HostExprId bytes = pool().ceil_div(pool().mul(len, width), byte);
    return build_.builtin(args.id, vector_type(kU8, bytes), {x.expr}, args.span,
                          [&](Expr& e) { e.size = width; });
  }
  const auto size = all_.calls.named_size(args, "size");
  if (!size) return error_value(args.span);
  return build_.behind_filter(x, args.span, [&](const Value& bytes) {
    build_.require_at_most(pool().ceil_div(pool().mul(*size, width), byte), len,
                           "`unpack` reads at most " + sizes_.size_text(len) + " bytes", args.span);
    return build_.builtin(args.id, vector_type(*element, *size), {bytes.expr}, args.span,
                          [&](Expr& e) { e.size = *size; });
  });
}

// The operands of `concat` or `stack`, in a common type.
std::optional<std::vector<Value>> Operators::parts_of(const CallArgs& args) {
  std::vector<Value> parts;
  parts.reserve(args.positional.size());
  for (ast::ExprId id : args.positional) parts.push_back(FOUND(all_.exprs.expr(id)));
  parts = conversions_.unmet_together(std::move(parts));
  std::optional<DType> dtype;
  for (const Value& part : parts) {
    const auto own = types_.own_dtype(part);
    if (own && (!dtype || widens_losslessly(*dtype, *own))) dtype = own;
  }
  const Value first = parts.front();
  for (Value& part : parts) {
    const Value x =
        FOUND(dtype ? conversions_.coerce(part, *dtype) : conversions_.materialize(part));
    if (all_.calls.check_lambda_array(x).is_error()) return std::nullopt;
    const bool is_matrix = args.id == BuiltinId::concat && x.type.rank == 2;
    if (x.type.rank != 1 && !is_matrix)
      return mistake<DiagKind::NeedsVector>(part.span, args.name, text_.describe(part));
    if (!dtype) dtype = x.type.dtype;
    const bool fits = x.type.dtype == *dtype && x.type.rank == types_.value_type(first).rank;
    if (!fits) {
      cannot_combine(args.name, first, part, args.span);
      return std::nullopt;
    }
    part = x;
  }
  return parts;
}

// Axis -1: all their elements, one part after the other.
Value Operators::joined(std::span<const Value> parts, const Type& type, int axis, Span span) {
  std::vector<ExprId> operands;
  operands.reserve(parts.size());
  for (const Value& part : parts) {
    const Type flat = vector_type(type.dtype, sizes_.num_elems(part.type));
    operands.push_back((axis < 0 ? reshaped(part, flat, span) : part).expr);
  }
  Type made = type;
  if (axis < 0) made = vector_type(type.dtype, sizes_.num_elems(type));
  const Value all = build_.builtin(BuiltinId::concat, made, std::move(operands), span,
                                   [&](Expr& e) { e.axis = static_cast<std::int8_t>(axis); });
  return reshaped(all, type, span);
}

Value Operators::concat_call(const CallArgs& args) {
  std::vector<Value> parts = FOUND(parts_of(args));
  const int axis = FOUND(all_.calls.axis(args, parts.front()));
  const int line = axis == 1 ? 1 : 0;
  Type type = parts.front().type;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Type& next = parts[i].type;
    if (type.rank == 2 && !prover_.proves_equal(type.dims[1 - line], next.dims[1 - line]))
      return cannot_combine(args.name, parts.front(), parts[i], args.span, false);
    type.dims[line] = pool().add(type.dims[line], next.dims[line]);
  }
  return joined(parts, type, line == 1 ? 1 : -1, args.span);
}

Value Operators::stack_call(const CallArgs& args) {
  std::int64_t axis = 0;
  if (const auto at = args.named.find("axis"); at != args.named.end()) {
    axis = FOUND(all_.numbers.constant_int(at->second->value));
    if (axis != 0 && axis != 1)
      return mistake<DiagKind::OutOfRange>(at->second->span, "axis " + std::to_string(axis),
                                           "0 and 1");
  }
  std::vector<Value> parts = FOUND(parts_of(args));
  const HostExprId length = parts.front().type.dims[0];
  for (const Value& part : parts) {
    if (!prover_.proves_equal(part.type.dims[0], length))
      return cannot_combine(args.name, parts.front(), part, args.span, false);
  }
  const HostExprId num = pool().const_int(static_cast<std::int64_t>(parts.size()));
  const Type rows = matrix_type(parts.front().type.dtype, num, length);
  const Value all = joined(parts, rows, -1, args.span);
  return axis == 0 ? all : transposed(all, args.span);
}

Value Operators::flip_call(const CallArgs& args) {
  const Value x = FOUND(all_.calls.array_operand(args.positional[0], args.name));
  const int along = FOUND(all_.calls.line_axis(args, x));
  const Value lines = along == 1 ? transposed(x, args.span) : x;
  const HostExprId length = lines.type.dims[0];
  const Value number = build_.builtin(BuiltinId::iota, vector_type(kU32, length), {}, args.span,
                                      [&](Expr& e) { e.size = length; });
  const Value end = conversions_.coerce(host_value(length, args.span), kU32);
  const Value one = host_value(pool().const_int(1), args.span);
  Value index = scalar_op(ScalarOp::sub, {end, number}, args.span, "-");
  index = FOUND(scalar_op(ScalarOp::sub, {index, one}, args.span, "-"));
  index.facts = {.unique = true, .limit = length};
  const Value turned = all_.exprs.gather(lines, index, args.span);
  return along == 1 && !turned.is_error() ? transposed(turned, args.span) : turned;
}

Value Operators::slice_call(const CallArgs& args) {
  const Value x = all_.calls.array_operand(args.positional[0], args.name);
  const auto size = all_.calls.size_arg(args.positional[2], args.name);
  const Value begin = all_.exprs.expr(args.positional[1]);
  if (x.is_error() || !size || begin.is_error()) return error_value(args.span);
  if (begin.is_host() && !begin.is_big) {
    const HostExprId from = pool().cast(begin.host, HostType::Int);
    return all_.exprs.make_slice(x, from, pool().add(from, *size), args.span);
  }
  return all_.exprs.slice_at(x, all_.exprs.as_index(begin), *size, args.span);
}

// Exact numbers stay exact, so that they take the type of their other operand.
std::optional<Value> Operators::reshaped_table(const Value& table,
                                               std::span<const HostExprId> dims) {
  std::int64_t size = 1;
  for (const HostExprId dim : dims) {
    if (!pool().is_const(dim)) return std::nullopt;
    size *= pool().const_value(dim).as_int();
  }
  if (size != static_cast<std::int64_t>(table.table.size())) return std::nullopt;
  Value result = table;
  result.table_cols =
      dims.size() == 1 ? 0 : static_cast<std::uint32_t>(pool().const_value(dims[1]).as_int());
  if (table.quotient) {
    Value quotient = *table.quotient;
    quotient.table_cols = result.table_cols;
    result.quotient = std::make_shared<const Value>(std::move(quotient));
  }
  return result;
}

Value Operators::reshape_call(const CallArgs& args) {
  const Value given = all_.exprs.expr(args.positional[0]);
  std::vector<HostExprId> dims;
  for (std::size_t i = 1; i < args.positional.size(); ++i) {
    dims.push_back(FOUND(all_.calls.size_arg(args.positional[i], args.name)));
  }
  if (given.kind == ValueKind::Table) {
    if (auto table = reshaped_table(given, dims)) return *table;
  }
  Value x = FOUND(all_.calls.array_of(all_.calls.operand_of(given), args.name));
  Type type = vector_type(x.type.dtype, dims[0]);
  if (dims.size() == 2) type = matrix_type(x.type.dtype, dims[0], dims[1]);
  const HostExprId from = sizes_.num_elems(x.type), to = sizes_.num_elems(type);
  if (!mode_.element && !prover_.proves_equal(from, to)) {
    if (prover_.proves_different(from, to) || pool().has_count(from) || pool().has_count(to)) {
      auto& diag = reporter_.report<DiagKind::Mismatch>(
          args.span, "an array of " + sizes_.size_text(from) + " elements", sizes_.type_text(type));
      text_.note_sizes(diag, {&x});
      return error_value(args.span);
    }
    build_.require(pool().make(HostOp::Eq, from, to),
                   "`reshape` keeps the number of elements: " + sizes_.size_text(from) + " is " +
                       sizes_.size_text(to),
                   args.span);
  }
  Value result = build_.builtin(BuiltinId::reshape, type, {x.expr}, args.span);
  result.facts = x.facts;
  result.facts.unique_in_rows = x.facts.unique_in_rows && sizes_.same_shape(x.type, type);
  return result;
}

// A table of exact numbers in the order of its columns.
Value Operators::transposed_table(const Value& table) {
  Value result = table;
  const std::size_t cols = table.table_cols, rows = table.table.size() / cols;
  for (std::size_t i = 0; i < table.table.size(); ++i) {
    const std::size_t from = i % rows * cols + i / rows;
    result.table[i] = table.table[from];
    result.big_elements[i] = table.big_elements[from];
  }
  result.table_cols = static_cast<std::uint32_t>(rows);
  if (table.quotient) {
    result.quotient = std::make_shared<const Value>(transposed_table(*table.quotient));
  }
  return result;
}

Value Operators::transpose_call(const CallArgs& args) {
  const Value given = all_.exprs.expr(args.positional[0]);
  if (given.kind == ValueKind::Table && given.table_cols != 0) return transposed_table(given);
  Value x = FOUND(all_.calls.matrix_of(all_.calls.operand_of(given), args.name));
  return transposed(x, args.span);
}

Value Operators::transposed(const Value& x, Span span) {
  Value result =
      build_.builtin(BuiltinId::transpose,
                     matrix_type(x.type.dtype, x.type.dims[1], x.type.dims[0]), {x.expr}, span);
  result.facts = {.unique = x.facts.unique, .limit = x.facts.limit, .assumed = x.facts.assumed};
  return result;
}

Value Operators::chunk_call(const CallArgs& args) {
  const bool is_chunk = args.id == BuiltinId::chunk;
  const Value x = is_chunk ? all_.calls.vector_operand(args.positional[0], args.name)
                           : all_.calls.matrix_operand(args.positional[0], args.name);
  const auto size = all_.calls.size_arg(args.positional[1], args.name);
  if (x.is_error() || !size) return error_value(args.span);
  const Span size_span = tree()[args.positional[1]].span;
  const auto made = [&](const Type& type, const Value& from) {
    return build_.builtin(args.id, type, {from.expr}, args.span, [&](Expr& e) { e.size = *size; });
  };
  if (is_chunk) {
    const HostExprId one = pool().const_int(1);
    build_.require_at_most(one, *size, "`chunk` makes rows of at least one element", size_span);
    return made(matrix_type(x.type.dtype, pool().ceil_div(x.type.dims[0], *size), *size), x);
  }
  return build_.behind_filter(x, args.span, [&](const Value& rows) {
    const HostExprId all = sizes_.num_elems(rows.type);
    build_.require_at_most(
        *size, all, "`unchunk` takes at most " + sizes_.size_text(all) + " elements", size_span);
    return made(vector_type(rows.type.dtype, *size), rows);
  });
}

Value Operators::iota_call(const CallArgs& args) {
  std::optional<HostExprId> size;
  if (!args.positional.empty()) {
    size = all_.calls.size_arg(args.positional[0], args.name);
  } else if (mode_.wanted != nullptr && mode_.wanted->rank == 1) {
    size = mode_.wanted->dims[0];
  } else {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "a size");
  }
  if (!size) return error_value(args.span);
  Value result = build_.builtin(BuiltinId::iota, vector_type(kU32, *size), {}, args.span,
                                [&](Expr& e) { e.size = *size; });
  result.facts = {true, true, *size};
  if (!is_by_rows()) return result;
  return reshaped(result, matrix_type(kU32, pool().const_int(1), *size), args.span);
}

Value Operators::histogram_call(const CallArgs& args) {
  Value x = all_.calls.array_operand(args.positional[0], args.name);
  const auto bins = all_.calls.named_size(args, "bins");
  if (x.is_error() || !bins) return error_value(args.span);
  if (!is_int(x.type.dtype))
    return error_value(reporter_.report<DiagKind::CannotApply>(x.span, args.name, text_.describe(x))
                           .note("it counts integers"));
  auto where = all_.calls.mask(args, x.type);
  if (!where) return error_value(args.span);
  if (x.type.rank == 2) {
    const Type flat = vector_type(x.type.dtype, sizes_.num_elems(x.type));
    const Value mask = repeated(*where, x.type, args.span);
    where = reshaped(mask, flat, args.span);
    x = reshaped(x, flat, args.span);
  }
  return build_.builtin(BuiltinId::histogram, vector_type(kU32, *bins), {x.expr, where->expr},
                        args.span, [&](Expr& e) { e.size = *bins; });
}

}  // namespace cinch::sema
