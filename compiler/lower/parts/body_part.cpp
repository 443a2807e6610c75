// Bodies of body_part.h.
#include "compiler/lower/parts/body_part.h"

#include <fmt/format.h>

#include "compiler/lower/parts/expressions.h"
#include "runtime/core/check.h"

namespace cinch::lower {

Lowered BodyPart::value(ExprId id) {
  const Expr& e = expr(id);
  const ir::Span outer = emit().span();
  emit().set_span(e.span);
  const Lowered result = ExpressionLowering(cx()).lower(e);
  emit().set_span(outer);
  return result;
}

ValueId BodyPart::uniform(ExprId id) {
  const Lowered v = value(id);
  if (v.lanes != 0) limitation("an operator that takes one value for all elements");
  return v.id;
}

bool BodyPart::gives_value(ExprId id) const {
  const Expr& e = expr(id);
  if (e.kind == ExprKind::Block) return !e.args.empty() && e.args[0] && gives_value(e.args[0]);
  if (e.kind == ExprKind::If) return e.args.size() > 2 && e.args[2] && gives_value(e.args[1]);
  return true;
}

ValueId BodyPart::host_scalar(HostExprId size, DType dtype) {
  return emit().size_scalar(size, dtype, [this](std::uint32_t count) {
    const auto found = cx().counts.find(count);
    return found != cx().counts.end() ? found->second : emit().count_value(count);
  });
}

// A count of the payload is known everywhere; one that a branch or loop found only within.
ValueId BodyPart::num_draws(HostExprId draws) {
  for (const std::uint32_t count : emit().exprs().counts_of(draws)) {
    const bool is_known = count < cx().out.info.wire.counts.size() || cx().counts.contains(count);
    if (is_known) continue;
    CINCH_LIMITATION(
        located(emit().span(), "a random draw in or behind a loop whose bounds have the count `" +
                                   cx().out.info.counts[count].name +
                                   "`, which another branch or loop finds"));
  }
  return host_scalar(draws, kI64);
}

std::int8_t BodyPart::axis_of(const Expr& e, const Type& type) {
  return type.rank == 2 ? e.axis : ir::kAll;
}

// ---- lanes

// Ranks that cannot be lifted are a limitation; a matrix of one row counts as a vector.
int BodyPart::lane_rank(const Type& source, int lanes) {
  const bool is_row = source.rank == 2 && emit().is_one(source.dims[0]);
  const int rank = is_row ? 1 : source.rank;
  if (rank + lanes > 2) limitation("an operator on matrices");
  return rank;
}

Type BodyPart::lifted(const Type& source, int lanes) {
  if (lanes == 0) return source;
  const int rank = lane_rank(source, lanes);
  if (lanes == 2) return matrix_type(source.dtype, cx().lanes.dims[0], cx().lanes.dims[1]);
  if (rank == 0) return vector_type(source.dtype, cx().lanes.dims[0]);
  return matrix_type(source.dtype, cx().lanes.dims[0], source.dims[source.rank - 1]);
}

// Brings the value into a shape that broadcasts with others of the same source type and lanes.
ValueId BodyPart::aligned(Lowered v, const Type& target, int lanes) {
  const Type type = emit().type(v.id);
  if (type.rank == 0 || lanes == 0) return v.id;
  const int rank = lane_rank(target, lanes);
  if (lanes == 2) {
    if (v.lanes == 0) limitation("an operator on matrices");
    return v.lanes == 2 ? v.id
                        : emit().reshape(v.id, matrix_type(type.dtype, type.dims[0], emit().one()));
  }
  if (rank == 0 || type.rank == 2) return v.id;
  return v.lanes == 1 ? emit().reshape(v.id, matrix_type(type.dtype, type.dims[0], emit().one()))
                      : emit().reshape(v.id, matrix_type(type.dtype, emit().one(), type.dims[0]));
}

ValueId BodyPart::full(Lowered v, const Type& source, int lanes) {
  if (lanes == 0) return emit().spread(v.id, source);
  const Type type = lifted(source, lanes);
  return emit().spread(aligned(v, source, lanes), type);
}

Lowered BodyPart::select_lanes(Lowered condition, Lowered a, Lowered b, const Type& source) {
  if (a.id == b.id) return a;
  const std::uint8_t lanes = std::max({condition.lanes, a.lanes, b.lanes});
  const ValueId chosen = emit().map(ScalarOp::select, aligned(condition, source, lanes),
                                    aligned(a, source, lanes), aligned(b, source, lanes));
  return {chosen, lanes};
}

// ---- messages

std::string BodyPart::located(const dsl::Span& span, const std::string& text) const {
  const dsl::SourceBuffer* file = cx().sources == nullptr ? nullptr : cx().sources->find(span.file);
  if (file == nullptr) return text;
  const dsl::LineColumn at = file->position(span.begin);
  const std::string& path = file->name();
  return fmt::format("{}:{}:{}: {}", path.substr(path.rfind('/') + 1), at.line, at.column, text);
}

void BodyPart::limitation(const std::string& what) const {
  CINCH_LIMITATION(located(
      emit().span(),
      what + " inside a lambda over elements, on values that differ from element to element"));
}

}  // namespace cinch::lower
