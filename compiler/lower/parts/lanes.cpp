#include <fmt/format.h>

#include "compiler/lower/parts/body_lowering.h"
#include "runtime/core/check.h"

namespace cinch::lower {
Lowered BodyLowering::value(ExprId id) {
  const Expr& e = expr(id);
  const ir::Span outer = emit_.span();
  emit_.set_span(e.span);
  const Lowered result = lower(e);
  emit_.set_span(outer);
  return result;
}

ValueId BodyLowering::uniform(ExprId id) {
  const Lowered v = value(id);
  if (v.lanes != 0) limitation("an operator that takes one value for all elements");
  return v.id;
}

bool BodyLowering::gives_value(ExprId id) const {
  const Expr& e = expr(id);
  if (e.kind == ExprKind::Block) return !e.args.empty() && e.args[0] && gives_value(e.args[0]);
  if (e.kind == ExprKind::If) return e.args.size() > 2 && e.args[2] && gives_value(e.args[1]);
  return true;
}

ValueId BodyLowering::host_scalar(HostExprId size, DType dtype) {
  return emit_.size_scalar(size, dtype, [this](std::uint32_t count) {
    const auto found = counts_.find(count);
    return found != counts_.end() ? found->second : emit_.count_value(count);
  });
}

// A count of the payload is known everywhere; one that a branch or loop found only within.
ValueId BodyLowering::num_draws(HostExprId draws) {
  for (const std::uint32_t count : emit_.exprs().counts_of(draws)) {
    const bool is_known = count < out_.info.wire.counts.size() || counts_.contains(count);
    if (is_known) continue;
    CINCH_LIMITATION(located(
        emit_.span(), "a random draw in or behind a loop whose bounds have the count `" +
                          out_.info.counts[count].name + "`, which another branch or loop finds"));
  }
  return host_scalar(draws, kI64);
}

std::int8_t BodyLowering::axis_of(const Expr& e, const Type& type) {
  return type.rank == 2 ? e.axis : ir::kAll;
}

// ---- lanes

// Ranks that cannot be lifted are a limitation; a matrix of one row counts as a vector.
int BodyLowering::lane_rank(const Type& source, int lanes) {
  const bool is_row = source.rank == 2 && emit_.is_one(source.dims[0]);
  const int rank = is_row ? 1 : source.rank;
  if (rank + lanes > 2) limitation("an operator on matrices");
  return rank;
}

Type BodyLowering::lifted(const Type& source, int lanes) {
  if (lanes == 0) return source;
  const int rank = lane_rank(source, lanes);
  if (lanes == 2) return matrix_type(source.dtype, lanes_.dims[0], lanes_.dims[1]);
  if (rank == 0) return vector_type(source.dtype, lanes_.dims[0]);
  return matrix_type(source.dtype, lanes_.dims[0], source.dims[source.rank - 1]);
}

// Brings the value into a shape that broadcasts with others of the same source type and lanes.
ValueId BodyLowering::aligned(Lowered v, const Type& target, int lanes) {
  const Type type = emit_.type(v.id);
  if (type.rank == 0 || lanes == 0) return v.id;
  const int rank = lane_rank(target, lanes);
  if (lanes == 2) {
    if (v.lanes == 0) limitation("an operator on matrices");
    return v.lanes == 2 ? v.id
                        : emit_.reshape(v.id, matrix_type(type.dtype, type.dims[0], emit_.one()));
  }
  if (rank == 0 || type.rank == 2) return v.id;
  return v.lanes == 1 ? emit_.reshape(v.id, matrix_type(type.dtype, type.dims[0], emit_.one()))
                      : emit_.reshape(v.id, matrix_type(type.dtype, emit_.one(), type.dims[0]));
}

ValueId BodyLowering::full(Lowered v, const Type& source, int lanes) {
  if (lanes == 0) return emit_.spread(v.id, source);
  const Type type = lifted(source, lanes);
  return emit_.spread(aligned(v, source, lanes), type);
}

Lowered BodyLowering::select_lanes(Lowered condition, Lowered a, Lowered b, const Type& source) {
  if (a.id == b.id) return a;
  const std::uint8_t lanes = std::max({condition.lanes, a.lanes, b.lanes});
  const ValueId chosen = emit_.map(ScalarOp::select, aligned(condition, source, lanes),
                                   aligned(a, source, lanes), aligned(b, source, lanes));
  return {chosen, lanes};
}

// ---- messages

std::string BodyLowering::located(const dsl::Span& span, const std::string& text) const {
  const dsl::SourceBuffer* file = sources_ == nullptr ? nullptr : sources_->find(span.file);
  if (file == nullptr) return text;
  const dsl::LineColumn at = file->position(span.begin);
  const std::string& path = file->name();
  return fmt::format("{}:{}:{}: {}", path.substr(path.rfind('/') + 1), at.line, at.column, text);
}

void BodyLowering::limitation(const std::string& what) const {
  CINCH_LIMITATION(located(
      emit_.span(),
      what + " inside a lambda over elements, on values that differ from element to element"));
}

// Uses the bits of signed indices, so that a negative one is beyond every array.
ValueId BodyLowering::as_index(ValueId value) {
  const DType dtype = emit_.dtype(value);
  if (is_signed_int(dtype)) {
    const bool is_wide = dtype.bits > 32;
    value = emit_.convert(value, is_wide ? kI64 : kI32);
    value = emit_.bitcast(value, is_wide ? kU64 : kU32);
  }
  return emit_.convert(value, kU32);
}

ValueId BodyLowering::holds_or_inactive(Lowered holds, const Type& type) {
  const std::optional<Lowered>& active = lanes_.active;
  if (!active) return holds.id;
  const std::uint8_t lanes = std::max(holds.lanes, active->lanes);
  const ValueId inactive = emit_.map(ScalarOp::bit_not, aligned(*active, type, lanes));
  return emit_.map(ScalarOp::bit_or, aligned(holds, type, lanes), inactive);
}

void BodyLowering::check_all(ValueId mask, const std::string& text) {
  if (emit_.type(mask).rank > 0) {
    mask = emit_.reduce(ScalarOp::bit_and, mask);
  }
  emit_.check(mask, text);
}

void BodyLowering::check_index(Lowered index, const Type& index_type, HostExprId size,
                               const std::string& text) {
  if (!lanes_.active && !emit_.exprs().has_count(size)) {
    emit_.check_index(index.id, size, text);
    return;
  }
  const ValueId holds = emit_.map(ScalarOp::lt, index.id, host_scalar(size, kU32));
  check_all(holds_or_inactive({holds, index.lanes}, index_type), text);
}

void BodyLowering::check_condition(Lowered condition, const std::string& text) {
  check_all(holds_or_inactive(condition, scalar_type(kBool)), text);
}

// 0 … K - 1 along a row of the lanes: [1, K].
ValueId BodyLowering::lane_columns(HostExprId size) {
  return emit_.reshape(emit_.iota(size), matrix_type(kU32, emit_.one(), size));
}

Lowered BodyLowering::join_lanes(const Expr& e, const std::vector<Lowered>& parts) {
  if (lanes_.rank != 1) limitation("an array made in a lambda inside another");
  const HostExprId size = e.type.dims[0];
  const ValueId column = lane_columns(size);
  ValueId joined;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Type& type = expr(e.args[i]).type;
    const HostExprId part_size = type.rank == 0 ? emit_.one() : type.dims[0];
    const std::int64_t len = emit_.exprs().const_value(part_size).as_int();
    if (len == 0) continue;
    ValueId part = emit_.convert(parts[i].id, e.type.dtype);
    const ValueId first = emit_.constant_int(kU32, begin);
    if (type.rank == 0) {
      part = aligned({part, parts[i].lanes}, e.type, parts[i].lanes);
    } else {
      const ValueId from = emit_.map(ScalarOp::sub, emit_.iota(size), first);
      const ValueId last = emit_.constant_int(kU32, len - 1);
      const ValueId at = emit_.map(ScalarOp::min, from, last);
      part = emit_.along(full({part, parts[i].lanes}, type, 1),
                         full({at}, vector_type(kU32, size), 1), 1);
    }
    const bool is_first = !joined.is_valid();
    const ValueId is_before = is_first ? ValueId() : emit_.map(ScalarOp::lt, column, first);
    joined = is_first ? part : emit_.map(ScalarOp::select, is_before, joined, part);
    begin += len;
  }
  CINCH_CHECK(joined.is_valid(), "an array of no elements inside a lambda");
  return {emit_.spread(joined, lifted(e.type, 1)), 1};
}

void BodyLowering::assign_lanes(const Stmt& s) {
  const Expr& index_expr = expr(s.expr2);
  const Type type = checked_.vars[s.var.index()].type;
  if (s.is_state || lanes_.rank != 1 || index_expr.type.rank != 0 || type.rank != 1) {
    limitation("assignment to several elements");
  }
  Lowered index = value(s.expr2);
  index.id = as_index(index.id);
  const Lowered stored = value(s.expr);
  if (!s.proved_in_bounds) {
    check_index(
        index, index_expr.type, type.dims[0],
        located(s.span, "an index of '" + checked_.vars[s.var.index()].name + "' is out of range"));
  }
  Lowered& target = vars_[s.var.index()];
  const ValueId is_there = emit_.map(ScalarOp::eq, lane_columns(type.dims[0]),
                                     aligned(index, with_dtype(type, kU32), index.lanes));
  const ValueId converted = emit_.convert(stored.id, type.dtype);
  const ValueId chosen =
      emit_.map(ScalarOp::select, is_there, aligned({converted, stored.lanes}, type, stored.lanes),
                aligned(target, type, 1));
  target = {emit_.spread(chosen, lifted(type, 1)), 1};
}

}  // namespace cinch::lower
