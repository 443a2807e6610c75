// Reductions and scans in the language's fixed order, along every line of an axis.
#include <utility>

#include "compiler/interp/evaluator.h"
#include "runtime/core/numbers/ordered_reduce.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::interp {

Evaluator::Elements Evaluator::combine(const Op& op, const Elements& a, const Elements& b) {
  const ir::Combiner& combiner = function_.combiners[op.attrs.combiner.index()];
  if (combiner.op) {
    const Element operands[] = {a[0], b[0]};
    return {evaluate_scalar(*combiner.op, in(op, 0).dtype, operands)};
  }
  std::vector<Array> args;
  for (const Elements* side : {&a, &b}) {
    for (std::size_t i = 0; i < side->size(); ++i) {
      args.push_back(make_scalar(in(op, i).dtype, (*side)[i]));
    }
  }
  Elements joined;
  for (const Array& value : run_region(combiner.region, std::move(args))) {
    joined.push_back(value.bits[0]);
  }
  return joined;
}

Evaluator::Lines Evaluator::lines_of(const Array& array, std::int8_t axis) {
  if (axis == ir::kAll || array.rank < 2) return {1, array.size(), 0, 1};
  if (axis == 1) return {array.dims[0], array.dims[1], array.dims[1], 1};
  return {array.dims[1], array.dims[0], 1, array.dims[1]};
}

Evaluator::Elements Evaluator::values_at(const Op& op, std::size_t n, std::size_t i) const {
  Elements values(n);
  for (std::size_t k = 0; k < n; ++k) values[k] = in(op, k).bits[i];
  return values;
}

Evaluator::Elements Evaluator::inits_of(const Op& op, std::size_t n) const {
  Elements inits(n);
  for (std::size_t k = 0; k < n; ++k) inits[k] = in(op, n + k).bits[0];
  return inits;
}

void Evaluator::reduce_line(const Op& op, const Lines& lines, std::int64_t line) {
  const std::size_t n = op.results.size();
  const Array* mask = ir::has_mask(op) ? &in(op, 2 * n) : nullptr;
  const auto at = [&](std::size_t i) -> std::optional<Elements> {
    const std::size_t place = lines.at(line, static_cast<std::int64_t>(i));
    if (mask && !mask->bits[place]) return std::nullopt;
    return values_at(op, n, place);
  };
  const auto join = [&](const Elements& a, const Elements& b) { return combine(op, a, b); };
  const auto found = ordered_reduce<Elements>(static_cast<std::size_t>(lines.length), at, join);
  Elements result = inits_of(op, n);
  if (found) result = combine(op, result, *found);
  for (std::size_t k = 0; k < n; ++k) out(op, k).bits[static_cast<std::size_t>(line)] = result[k];
}

void Evaluator::eval_reduce(const Op& op) {
  const Lines lines = lines_of(in(op, 0), op.attrs.axis);
  for (std::size_t k = 0; k < op.results.size(); ++k) {
    Array result = in(op, k);
    if (op.attrs.axis == ir::kAll) {
      result = make_scalar(result.dtype, 0);
    } else {
      result.dims[op.attrs.axis] = 1;
      result.bits.assign(static_cast<std::size_t>(lines.num_lines), 0);
    }
    out(op, k) = std::move(result);
  }
  for (std::int64_t line = 0; line < lines.num_lines; ++line) reduce_line(op, lines, line);
}

void Evaluator::scan_line(const Op& op, const Lines& lines, std::int64_t line) {
  const std::size_t n = op.results.size();
  std::vector<Elements> scanned;
  scanned.reserve(lines.length);
  for (std::int64_t i = 0; i < lines.length; ++i) {
    scanned.push_back(values_at(op, n, lines.at(line, i)));
  }
  ordered_scan(scanned, [&](const Elements& a, const Elements& b) { return combine(op, a, b); });
  const Elements inits = inits_of(op, n);
  const std::int64_t shift = op.attrs.exclusive ? 1 : 0;
  for (std::int64_t i = 0; i < lines.length; ++i) {
    const Elements result =
        i < shift ? inits : combine(op, inits, scanned[static_cast<std::size_t>(i - shift)]);
    for (std::size_t k = 0; k < n; ++k) out(op, k).bits[lines.at(line, i)] = result[k];
  }
}

void Evaluator::eval_scan(const Op& op) {
  const Lines lines = lines_of(in(op, 0), op.attrs.axis);
  for (std::size_t k = 0; k < op.results.size(); ++k) out(op, k) = in(op, k);
  for (std::int64_t line = 0; line < lines.num_lines; ++line) scan_line(op, lines, line);
}

}  // namespace cinch::interp
