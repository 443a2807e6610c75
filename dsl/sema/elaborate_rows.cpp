// A compressor of vectors on every row of a matrix (`set inner.r = rows`): its vectors are matrices
// of as many rows, its scalars are matrices of one column, and what reduces does so along rows.
#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Elaborator::not_by_rows(std::string_view what, Span span) {
  reporter_.report<DiagKind::NotByRows>(span, what)
      .note(env_->instance->rows_span, "rows are set here");
  return error(span);
}

bool Elaborator::has_row_form(BuiltinId id) const {
  switch (builtin_info(id).group) {
    case BuiltinGroup::Map:
      return id == BuiltinId::map || id == BuiltinId::floor_div;
    case BuiltinGroup::Reduce:
    case BuiltinGroup::Scan:
    case BuiltinGroup::Sort:
      return true;
    case BuiltinGroup::Move:
      return is_scatter(id) || id == BuiltinId::iota;
    case BuiltinGroup::Random:
      return id != BuiltinId::random_index;
    case BuiltinGroup::Filter:
    case BuiltinGroup::Pack:
    case BuiltinGroup::Matrix:
    case BuiltinGroup::Collective:
      return false;
  }
  return false;
}

std::optional<Type> Elaborator::by_rows(const Type& type, Span span) {
  const HostExprId rows = env_->instance->rows;
  if (type.rank == 2) {
    not_by_rows("a matrix", span);
    return std::nullopt;
  }
  return matrix(type.dtype, rows, type.rank == 0 ? pool().const_int(1) : type.dims[0]);
}

void Elaborator::set_rows(Instance& inner, const Instance& outer, HostExprId rows, Span span) {
  if (inner.rows) {
    reporter_.report<DiagKind::DuplicateName>(span, "r");
    return;
  }
  if (outer.rows) {
    not_by_rows("`set inner.r`", span);
    return;
  }
  inner.rows = sizes_.canonical(rows);
  inner.rows_span = span;
  if (sizes_.proves_nonnegative(rows)) return;
  set_checks_.push_back({pool().make(HostOp::Ge, rows, pool().const_int(0)),
                         "`" + inner.prefix + "r` is not negative", span});
}

}  // namespace cinch::sema
