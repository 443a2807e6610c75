// Matrix ops. Every sum of products is an ordered reduction that begins at +0.
#include <bit>
#include <cmath>
#include <utility>

#include "compiler/interp/evaluator.h"
#include "runtime/core/numbers/ordered_reduce.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::interp {
namespace {

using Element = std::uint64_t;

Element apply(ScalarOp op, DType dtype, Element a, Element b = 0) {
  const Element operands[] = {a, b};
  return evaluate_scalar(op, dtype, operands);
}

// The sum of a(i) * b(i).
template <typename A, typename B>
Element dot(DType dtype, std::int64_t count, A&& a, B&& b) {
  const auto at = [&](std::size_t i) -> std::optional<Element> {
    return apply(ScalarOp::mul, dtype, a(i), b(i));
  };
  const auto add = [&](Element x, Element y) { return apply(ScalarOp::add, dtype, x, y); };
  const auto sum = ordered_reduce<Element>(static_cast<std::size_t>(count), at, add);
  return sum ? apply(ScalarOp::add, dtype, 0, *sum) : 0;
}

// A matrix by columns, for the Gram-Schmidt process.
class Columns {
 public:
  explicit Columns(Array& matrix) : matrix_(matrix), dtype_(matrix.dtype) {
    for (std::int64_t c = 0; c < matrix.dims[1]; ++c) {
      scale(c);
      lengths_.push_back(dot_of(column(c), column(c)));
    }
  }

  // Takes the columns before it out of column `c` once more and normalises it, or makes it zeros.
  void make(std::int64_t c) {
    const Elements v = column(c);
    const Element left = dot_of(v, v);
    const Elements rest = without_earlier(v, c);
    const Element kept = dot_of(rest, rest);
    const bool depends =
        is_at_most(left, lengths_[static_cast<std::size_t>(c)], ir::least_left(dtype_)) ||
        is_at_most(kept, left, ir::kLeastKept);
    const Element length = apply(ScalarOp::sqrt, dtype_, kept);
    for (std::int64_t r = 0; r < matrix_.dims[0]; ++r) {
      const Element x = rest[static_cast<std::size_t>(r)];
      at(r, c) = depends ? 0 : apply(ScalarOp::divide_or_zero, dtype_, x, length);
    }
  }

  // column b -= dot * column a
  void take_away(std::int64_t a, std::int64_t b) {
    const Element share = dot_of(column(a), column(b));
    for (std::int64_t r = 0; r < matrix_.dims[0]; ++r) {
      const Element part = apply(ScalarOp::mul, dtype_, share, at(r, a));
      at(r, b) = apply(ScalarOp::sub, dtype_, at(r, b), part);
    }
  }

 private:
  using Elements = std::vector<Element>;

  Element& at(std::int64_t row, std::int64_t col) {
    return matrix_.bits[static_cast<std::size_t>(row * matrix_.dims[1] + col)];
  }
  Elements column(std::int64_t c) {
    Elements found;
    for (std::int64_t r = 0; r < matrix_.dims[0]; ++r) found.push_back(at(r, c));
    return found;
  }
  Element dot_of(const Elements& a, const Elements& b) const {
    return dot(
        dtype_, static_cast<std::int64_t>(a.size()), [&](std::size_t i) { return a[i]; },
        [&](std::size_t i) { return b[i]; });
  }
  // Divides by a power of two, so that no square overflows or underflows.
  void scale(std::int64_t c) {
    Element largest = element_of_constant(dtype_, std::bit_cast<std::uint64_t>(-HUGE_VAL));
    for (Element x : column(c)) {
      largest = apply(ScalarOp::max, dtype_, largest, apply(ScalarOp::abs, dtype_, x));
    }
    const Element exponent = apply(ScalarOp::floor, dtype_, apply(ScalarOp::log2, dtype_, largest));
    const Element unit = apply(ScalarOp::exp2, dtype_, exponent);
    for (std::int64_t r = 0; r < matrix_.dims[0]; ++r) {
      at(r, c) = apply(ScalarOp::divide_or_zero, dtype_, at(r, c), unit);
    }
  }
  Elements without_earlier(const Elements& v, std::int64_t c) {
    Elements shares(static_cast<std::size_t>(matrix_.dims[1]), 0);
    for (std::int64_t e = 0; e < c; ++e) {
      shares[static_cast<std::size_t>(e)] = dot_of(v, column(e));
    }
    Elements rest;
    for (std::int64_t r = 0; r < matrix_.dims[0]; ++r) {
      const Element before = dot(
          dtype_, matrix_.dims[1], [&](std::size_t e) { return shares[e]; },
          [&](std::size_t e) { return at(r, static_cast<std::int64_t>(e)); });
      rest.push_back(apply(ScalarOp::sub, dtype_, v[static_cast<std::size_t>(r)], before));
    }
    return rest;
  }
  bool is_at_most(Element square, Element of, double share) const {
    const Element factor = element_of_constant(dtype_, std::bit_cast<std::uint64_t>(share));
    return apply(ScalarOp::le, dtype_, square, apply(ScalarOp::mul, dtype_, of, factor)) != 0;
  }

  Array& matrix_;
  DType dtype_;
  Elements lengths_;  // squared at first
};

}  // namespace

void Evaluator::eval_matmul(const Op& op) {
  const Array& a = in(op, 0);
  const Array& b = in(op, 1);
  Array result = make_out(op);
  const std::int64_t inner = a.dims[1];
  for (std::int64_t r = 0; r < result.dims[0]; ++r) {
    for (std::int64_t c = 0; c < result.dims[1]; ++c) {
      result.bits[static_cast<std::size_t>(r * result.dims[1] + c)] = dot(
          a.dtype, inner,
          [&](std::size_t i) { return a.bits[static_cast<std::size_t>(r * inner) + i]; },
          [&](std::size_t i) {
            return b.bits[i * static_cast<std::size_t>(b.dims[1]) + static_cast<std::size_t>(c)];
          });
    }
  }
  out(op) = std::move(result);
}

// Each normalised column is taken out of all later ones at once, as in the modified Gram-Schmidt
// process. Rounding leaves some of it there, so each is taken out a second time before its column's
// turn.
void Evaluator::eval_orthonormalize(const Op& op) {
  Array result = in(op, 0);
  Columns columns(result);
  for (std::int64_t j = 0; j < result.dims[1]; ++j) {
    columns.make(j);
    for (std::int64_t later = j + 1; later < result.dims[1]; ++later) columns.take_away(j, later);
  }
  out(op) = std::move(result);
}

// At distances 1, 2, 4, ….
void Evaluator::eval_butterflies(const Op& op) {
  Array result = in(op, 0);
  const DType dtype = result.dtype;
  const auto length = static_cast<std::size_t>(result.cols());
  if (length == 0 || (length & (length - 1)) != 0) {
    stop(rt::ErrorKind::InvalidArgument, "hadamard: the row length is not a power of two");
  }
  for (std::size_t distance = 1; distance < length; distance *= 2) {
    for (std::size_t i = 0; i < result.bits.size(); ++i) {
      if (i & distance) continue;  // rows are multiples of 2 * distance long
      const Element a = result.bits[i], b = result.bits[i + distance];
      result.bits[i] = apply(ScalarOp::add, dtype, a, b);
      result.bits[i + distance] = apply(ScalarOp::sub, dtype, a, b);
    }
  }
  out(op) = std::move(result);
}

// Butterflies, then one multiplication by 1 / sqrt(length).
void Evaluator::eval_hadamard(const Op& op) {
  eval_butterflies(op);
  Array& result = out(op);
  const DType dtype = result.dtype;
  const auto length = static_cast<std::size_t>(result.cols());
  const Element scale = apply(ScalarOp::rsqrt, dtype, convert_element(kU64, dtype, length));
  for (Element& x : result.bits) x = apply(ScalarOp::mul, dtype, x, scale);
}

// Reductions and scans in the language's fixed order, along every line of an axis.

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
