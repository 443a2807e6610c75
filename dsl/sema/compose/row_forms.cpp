// Operators that work by rows, and types with rows.
#include "dsl/sema/compose/items.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value RowForms::not_by_rows(std::string_view what, Span span) {
  reporter_.report<DiagKind::NotByRows>(span, what)
      .note(env_->instance->rows_span, "rows are set here");
  return error_value(span);
}

bool RowForms::has_row_form(BuiltinId id) const {
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

std::optional<Type> RowForms::by_rows(const Type& type, Span span) {
  const HostExprId rows = env_->instance->rows;
  if (type.rank == 2) {
    not_by_rows("a matrix", span);
    return std::nullopt;
  }
  return matrix_type(type.dtype, rows, type.rank == 0 ? pool().const_int(1) : type.dims[0]);
}

}  // namespace cinch::sema
