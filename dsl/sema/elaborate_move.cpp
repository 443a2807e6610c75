// Packing and moving: pack, concat, slice, scatter, reshape, transpose, chunk, iota, histogram.
#include "dsl/sema/elaborator.h"

#include "runtime/core/check.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Elaborator::move_call(BuiltinId id, const CallArgs& args) {
  switch (id) {
    case BuiltinId::pack:
    case BuiltinId::unpack:
      return pack_call(id, args);
    case BuiltinId::concat:
      return concat_call(args);
    case BuiltinId::slice:
      return slice_call(args);
    case BuiltinId::scatter:
    case BuiltinId::scatter_add:
    case BuiltinId::scatter_min:
    case BuiltinId::scatter_max:
      return scatter_call(id, args);
    case BuiltinId::reshape:
      return reshape_call(args);
    case BuiltinId::transpose:
      return transpose_call(args);
    case BuiltinId::chunk:
    case BuiltinId::unchunk:
      return chunk_call(id, args);
    case BuiltinId::iota:
      return iota_call(args);
    default:
      return histogram_call(args);
  }
}

Value Elaborator::pack_call(BuiltinId id, const CallArgs& args) {
  const Value x = vector_operand(args.positional[0], args.name);
  const auto bits_arg = args.named.find("bits");
  if (bits_arg == args.named.end()) {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "`bits:`");
    return error(args.span);
  }
  const auto bits = constant_int(bits_arg->second->value);
  if (x.is_error() || !bits) return error(args.span);
  const auto element = make_uint(*bits);
  if (!element) {
    reporter_.report<DiagKind::BadWidth>(bits_arg->second->span, "uint", *bits);
    return error(args.span);
  }
  const bool is_pack = id == BuiltinId::pack;
  const bool fits = is_pack ? is_int(x.type.dtype) || is_bool(x.type.dtype) : x.type.dtype == kU8;
  if (!fits) {
    reporter_.report<DiagKind::CannotApply>(x.span, args.name, describe(x))
        .note(is_pack ? "it takes integers" : "it takes [u8; …]");
    return error(args.span);
  }
  const HostExprId width = pool().const_int(*bits), byte = pool().const_int(8);
  const HostExprId len = x.type.dims[0];
  if (is_pack) {
    const HostExprId bytes = pool().ceil_div(pool().mul(len, width), byte);
    return builtin(id, vector(kU8, bytes), {x.expr}, args.span, [&](Expr& e) { e.size = width; });
  }
  const auto size = named_size(args, "size");
  if (!size) return error(args.span);
  return behind_filter(x, args.span, [&](const Value& bytes) {
    require_at_most(pool().ceil_div(pool().mul(*size, width), byte), len,
                    "`unpack` reads at most " + size_text(len) + " bytes", args.span);
    return builtin(id, vector(*element, *size), {bytes.expr}, args.span,
                   [&](Expr& e) { e.size = *size; });
  });
}

Value Elaborator::concat_call(const CallArgs& args) {
  std::vector<Value> parts;
  for (ast::ExprId id : args.positional) {
    parts.push_back(expr(id));
    if (parts.back().is_error()) return error(args.span);
  }
  parts = unmet_together(std::move(parts));
  std::optional<DType> dtype;
  for (const Value& part : parts) {
    const auto own = own_dtype(part);
    if (own && (!dtype || widens_losslessly(*dtype, *own))) dtype = own;
  }
  HostExprId size;
  std::vector<ExprId> operands;
  for (const Value& part : parts) {
    const Value x = dtype ? coerce(part, *dtype) : materialize(part);
    if (x.is_error() || check_lambda_array(x).is_error()) return error(args.span);
    if (x.type.rank != 1) {
      reporter_.report<DiagKind::NeedsVector>(part.span, args.name, describe(part));
      return error(args.span);
    }
    if (!dtype) dtype = x.type.dtype;
    if (x.type.dtype != *dtype) return cannot_combine(args.name, parts.front(), part, args.span);
    size = size ? pool().add(size, x.type.dims[0]) : x.type.dims[0];
    operands.push_back(x.expr);
  }
  CINCH_CHECK(dtype, "a concatenation of no arrays");
  return builtin(BuiltinId::concat, vector(*dtype, size), std::move(operands), args.span);
}

Value Elaborator::slice_call(const CallArgs& args) {
  const Value x = array_operand(args.positional[0], args.name);
  const auto size = size_arg(args.positional[2], args.name);
  const Value begin = expr(args.positional[1]);
  if (x.is_error() || !size || begin.is_error()) return error(args.span);
  if (begin.is_host() && !begin.is_big) {
    const HostExprId from = to_int(begin.host);
    return make_slice(x, from, pool().add(from, *size), args.span);
  }
  return slice_at(x, as_index(begin), *size, args.span);
}

bool Elaborator::is_scatter(BuiltinId id) {
  return id >= BuiltinId::scatter && id <= BuiltinId::scatter_max;
}

Value Elaborator::scatter_call(BuiltinId id, const CallArgs& args) {
  const auto at_arg = args.named.find("at");
  if (at_arg == args.named.end()) {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "`at:`");
    return error(args.span);
  }
  Scatter how{id};
  if (const auto keep = args.named.find("keep"); keep != args.named.end()) {
    const auto which = word(keep->second->value, {"first", "last"});
    if (!which) return error(args.span);
    how.keep = *which == "first" ? Keep::First : Keep::Last;
  }
  const Value v = operand(args.positional[0]);
  const Value at = as_index(operand(at_arg->second->value));
  const auto size = named_size(args, "size");
  if (v.is_error() || at.is_error() || !size) return error(args.span);
  if (at.type.rank == 2) {
    // Of a payload nothing says that a row's indices are free of repeats.
    const bool may_repeat = is_by_rows() && !at.facts.unique_in_rows;
    if (may_repeat && how.needs_unique()) how.id = BuiltinId::scatter_add;
    return scatter_rows(how, v, at, *size, args.span);
  }
  if (at.type.rank != 1) {
    reporter_.report<DiagKind::NeedsVector>(at.span, "at:", describe(at));
    return error(args.span);
  }
  if (v.type.rank > 0 && !sizes_.proves_equal(v.type.dims[0], at.type.dims[0])) {
    return cannot_combine(args.name, v, at, args.span, false);
  }
  return scatter_at(how, v, at, *size, args.span);
}

Value Elaborator::scatter_at(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                             Span span, bool in_rows) {
  if (how.needs_unique() && !at.facts.unique) {
    reporter_.report<DiagKind::IndexMayRepeat>(at.span).note(
        "`scatter_add` takes indices that repeat, and `keep: last` says which value stays");
    return error(span);
  }
  const Value values = how.id == BuiltinId::scatter ? v : arithmetic(v);
  if (values.is_error()) return error(span);
  Type type = vector(values.type.dtype, size);
  if (v.type.rank == 2) type = matrix(values.type.dtype, size, v.type.dims[1]);
  return builtin(how.id, type, {values.expr, at.expr}, span, [&](Expr& e) {
    e.size = size;
    e.keep = at.facts.unique ? Keep::Only : how.keep;
    e.proved_unique = at.facts.unique;
    e.proved_in_bounds = is_in_bounds(at, size);
    if (in_rows) e.axis = 1;
  });
}

// A matrix of column numbers: each row of values goes into a row of `size` elements of its own.
Value Elaborator::scatter_rows(const Scatter& how, const Value& v, const Value& at, HostExprId size,
                               Span span) {
  const bool fits = v.type.rank == 0 ||
                    (v.type.rank == 2 && sizes_.proves_equal(v.type.dims[0], at.type.dims[0]) &&
                     sizes_.proves_equal(v.type.dims[1], at.type.dims[1]));
  if (!fits) return cannot_combine(builtin_info(how.id).name, v, at, span, false);
  const HostExprId rows = at.type.dims[0];
  Value place = places_in_rows(at, size, span);
  if (place.is_error()) return place;
  place.span = at.span;
  const Value values =
      v.type.rank == 0 ? v : reshaped(v, vector(v.type.dtype, num_elems(v.type)), span);
  const Value flat = scatter_at(how, values, place, pool().mul(rows, size), span, true);
  return flat.is_error() ? flat : reshaped(flat, matrix(flat.type.dtype, rows, size), span);
}

// The same elements in another shape; the numbers of elements are known to agree.
Value Elaborator::reshaped(const Value& value, const Type& type, Span span) {
  if (value.is_error() || same_shape(value.type, type)) return value;
  Type shape = type;
  shape.dtype = value.type.dtype;
  return builtin(BuiltinId::reshape, shape, {value.expr}, span);
}

// Exact numbers stay exact, so that they take the type that they meet.
std::optional<Value> Elaborator::reshaped_table(const Value& table,
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

Value Elaborator::reshape_call(const CallArgs& args) {
  const Value given = expr(args.positional[0]);
  std::vector<HostExprId> dims;
  for (std::size_t i = 1; i < args.positional.size(); ++i) {
    const auto size = size_arg(args.positional[i], args.name);
    if (!size) return error(args.span);
    dims.push_back(*size);
  }
  if (given.kind == ValueKind::Table) {
    if (auto table = reshaped_table(given, dims)) return *table;
  }
  Value x = array_of(operand_of(given), args.name);
  if (x.is_error()) return x;
  Type type = vector(x.type.dtype, dims[0]);
  if (dims.size() == 2) type = matrix(x.type.dtype, dims[0], dims[1]);
  const HostExprId from = num_elems(x.type), to = num_elems(type);
  if (!sizes_.proves_equal(from, to)) {
    if (sizes_.proves_different(from, to) || pool().has_count(from) || pool().has_count(to)) {
      auto& diag = reporter_.report<DiagKind::Mismatch>(
          args.span, "an array of " + size_text(from) + " elements", type_text(type));
      note_sizes(diag, {&x});
      return error(args.span);
    }
    require(pool().make(HostOp::Eq, from, to),
            "`reshape` keeps the number of elements: " + size_text(from) + " is " + size_text(to),
            args.span);
  }
  Value result = builtin(BuiltinId::reshape, type, {x.expr}, args.span);
  result.facts = x.facts;
  result.facts.unique_in_rows = x.facts.unique_in_rows && same_shape(x.type, type);
  return result;
}

Value Elaborator::transpose_call(const CallArgs& args) {
  Value x = matrix_operand(args.positional[0], args.name);
  if (x.is_error()) return x;
  return builtin(BuiltinId::transpose, matrix(x.type.dtype, x.type.dims[1], x.type.dims[0]),
                 {x.expr}, args.span);
}

Value Elaborator::chunk_call(BuiltinId id, const CallArgs& args) {
  const bool is_chunk = id == BuiltinId::chunk;
  const Value x = is_chunk ? vector_operand(args.positional[0], args.name)
                           : matrix_operand(args.positional[0], args.name);
  const auto size = size_arg(args.positional[1], args.name);
  if (x.is_error() || !size) return error(args.span);
  const Span size_span = tree()[args.positional[1]].span;
  const auto made = [&](const Type& type, const Value& from) {
    return builtin(id, type, {from.expr}, args.span, [&](Expr& e) { e.size = *size; });
  };
  if (is_chunk) {
    const HostExprId one = pool().const_int(1);
    require_at_most(one, *size, "`chunk` makes rows of at least one element", size_span);
    return made(matrix(x.type.dtype, pool().ceil_div(x.type.dims[0], *size), *size), x);
  }
  return behind_filter(x, args.span, [&](const Value& rows) {
    const HostExprId all = num_elems(rows.type);
    require_at_most(*size, all, "`unchunk` takes at most " + size_text(all) + " elements",
                    size_span);
    return made(vector(rows.type.dtype, *size), rows);
  });
}

Value Elaborator::iota_call(const CallArgs& args) {
  std::optional<HostExprId> size;
  if (!args.positional.empty()) {
    size = size_arg(args.positional[0], args.name);
  } else if (wanted_ != nullptr && wanted_->rank == 1) {
    size = wanted_->dims[0];
  } else {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "a size");
  }
  if (!size) return error(args.span);
  Value result = builtin(BuiltinId::iota, vector(kU32, *size), {}, args.span,
                         [&](Expr& e) { e.size = *size; });
  result.facts = {true, true, *size};
  if (!is_by_rows()) return result;
  return reshaped(result, matrix(kU32, pool().const_int(1), *size), args.span);
}

Value Elaborator::histogram_call(const CallArgs& args) {
  Value x = array_operand(args.positional[0], args.name);
  const auto bins = named_size(args, "bins");
  if (x.is_error() || !bins) return error(args.span);
  if (!is_int(x.type.dtype)) {
    reporter_.report<DiagKind::CannotApply>(x.span, args.name, describe(x))
        .note("it counts integers");
    return error(args.span);
  }
  if (x.type.rank == 2) x = reshaped(x, vector(x.type.dtype, num_elems(x.type)), args.span);
  return builtin(BuiltinId::histogram, vector(kU32, *bins), {x.expr}, args.span,
                 [&](Expr& e) { e.size = *bins; });
}

}  // namespace cinch::sema
