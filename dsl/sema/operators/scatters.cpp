// Scatters into vectors, and into the rows of a matrix.
#include "dsl/sema/operators/operators.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value MoveOperators::scatter_call(BuiltinId id, const CallArgs& args) {
  const auto at_arg = args.named.find("at");
  if (at_arg == args.named.end()) {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "`at:`");
    return error_value(args.span);
  }
  Scatter how{id};
  if (const auto keep = args.named.find("keep"); keep != args.named.end()) {
    const auto which = all_.arguments.word(keep->second->value, {"first", "last"});
    if (!which) return error_value(args.span);
    how.keep = *which == "first" ? Keep::First : Keep::Last;
  }
  const Value v = all_.arguments.operand(args.positional[0]);
  const Value at = all_.indexing.as_index(all_.arguments.operand(at_arg->second->value));
  const auto size = all_.arguments.named_size(args, "size");
  if (v.is_error() || at.is_error() || !size) return error_value(args.span);
  if (at.type.rank == 2) {
    // Nothing proves that the indices of a payload's row do not repeat.
    const bool is_known = at.facts.unique_in_rows && at.facts.assumed == 0;
    const bool may_repeat = is_by_rows() && !is_known;
    if (may_repeat && how.needs_unique()) how.id = BuiltinId::scatter_add;
    return scatter_rows(how, v, at, *size, args.span);
  }
  if (at.type.rank != 1) {
    reporter_.report<DiagKind::NeedsVector>(at.span, "at:", text_.describe(at));
    return error_value(args.span);
  }
  if (v.type.rank > 0 && !prover_.proves_equal(v.type.dims[0], at.type.dims[0])) {
    return all_.scalars.cannot_combine(args.name, v, at, args.span, false);
  }
  return scatter_at(how, v, at, *size, args.span);
}

Value MoveOperators::scatter_at(const Scatter& how, const Value& v, const Value& at,
                                HostExprId size, Span span, bool in_rows) {
  const auto report = [this, place = at.span] {
    reporter_.report<DiagKind::IndexMayRepeat>(place).note(
        "`scatter_add` takes indices that repeat, and `keep: last` says which value stays");
  };
  if (how.needs_unique() && !all_.facts.holds(at.facts.unique, at.facts, report)) {
    return error_value(span);
  }
  const bool is_unique = how.needs_unique() || (at.facts.unique && at.facts.assumed == 0);
  const Value values = how.id == BuiltinId::scatter ? v : conversions_.arithmetic(v);
  if (values.is_error()) return error_value(span);
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
Value MoveOperators::scatter_rows(const Scatter& how, const Value& v, const Value& at,
                                  HostExprId size, Span span) {
  const bool fits = v.type.rank == 0 ||
                    (v.type.rank == 2 && prover_.proves_equal(v.type.dims[0], at.type.dims[0]) &&
                     prover_.proves_equal(v.type.dims[1], at.type.dims[1]));
  if (!fits) return all_.scalars.cannot_combine(builtin_info(how.id).name, v, at, span, false);
  const HostExprId rows = at.type.dims[0];
  Value place = all_.indexing.places_in_rows(at, size, span);
  if (place.is_error()) return place;
  place.span = at.span;
  const Value values =
      v.type.rank == 0
          ? v
          : all_.shapes.reshaped(v, vector_type(v.type.dtype, sizes_.num_elems(v.type)), span);
  const Value flat = scatter_at(how, values, place, pool().mul(rows, size), span, true);
  return flat.is_error()
             ? flat
             : all_.shapes.reshaped(flat, matrix_type(flat.type.dtype, rows, size), span);
}

}  // namespace cinch::sema
