// Filters, selection and sorting. One order of values: NaN counts highest for top_k and
// kth_largest and last for argsort; -0 equals +0; ties go to the lower index.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "compiler/interp/evaluator.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::interp {
namespace {

bool is_nan(DType dtype, std::uint64_t x) {
  return is_float(dtype) && std::isnan(f64_of(convert_element(dtype, kF64, x)));
}

// x < y by value; neither may be a NaN.
bool is_less(DType dtype, std::uint64_t x, std::uint64_t y) {
  if (is_float(dtype)) {
    return f64_of(convert_element(dtype, kF64, x)) < f64_of(convert_element(dtype, kF64, y));
  }
  if (is_signed_int(dtype)) return static_cast<std::int64_t>(x) < static_cast<std::int64_t>(y);
  return x < y;
}

// One line of an array: elements by their index in it.
struct Line {
  DType dtype;
  std::vector<std::uint64_t> elements;

  // Indices in the order of top_k: the largest first.
  std::vector<std::size_t> by_rank() const {
    return sorted([&](std::uint64_t x, std::uint64_t y) {
      if (is_nan(dtype, x) || is_nan(dtype, y)) return is_nan(dtype, x) && !is_nan(dtype, y);
      return is_less(dtype, y, x);
    });
  }
  // Indices in the order of argsort.
  std::vector<std::size_t> by_value(bool descending) const {
    return sorted([&](std::uint64_t x, std::uint64_t y) {
      if (is_nan(dtype, x) || is_nan(dtype, y)) return !is_nan(dtype, x) && is_nan(dtype, y);
      return descending ? is_less(dtype, y, x) : is_less(dtype, x, y);
    });
  }

 private:
  template <typename Before>
  std::vector<std::size_t> sorted(Before&& before) const {
    std::vector<std::size_t> order(elements.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (before(elements[a], elements[b])) return true;
      return a < b && !before(elements[b], elements[a]);
    });
    return order;
  }
};

template <typename Lines>
Line line_at(const Array& array, const Lines& lines, std::int64_t line) {
  Line result{array.dtype, {}};
  for (std::int64_t i = 0; i < lines.length; ++i) {
    result.elements.push_back(array.bits[lines.at(line, i)]);
  }
  return result;
}

// +0 for both zeros, the canonical NaN for all NaNs.
std::uint64_t plain_value(DType dtype, std::uint64_t x) {
  if (!is_float(dtype)) return x;
  const bool is_zero = f64_of(convert_element(dtype, kF64, x)) == 0;
  return is_zero ? 0 : canonical_element(dtype, x);
}

// The 0-th largest value: above all values.
std::uint64_t above_all(DType dtype) {
  if (is_float(dtype)) {
    return convert_element(kF64, dtype, element_of_f64(std::numeric_limits<double>::infinity()));
  }
  return max_int(dtype);
}

}  // namespace

void Evaluator::eval_nonzero(const Op& op) {
  const Elements& mask = in(op, 0).bits;
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  if (op.attrs.has_limit) limit = call_.size(op.attrs.size);
  Array index{kU32, 1, {0, 1}, {}};
  for (std::size_t i = 0; i < mask.size() && index.dims[0] < limit; ++i) {
    if (!mask[i]) continue;
    index.bits.push_back(i);
    ++index.dims[0];
  }
  call_.counts[op.attrs.index] = index.dims[0];
  out(op, 1) = make_scalar(kU32, static_cast<Element>(index.dims[0]));
  out(op, 0) = std::move(index);
}

void Evaluator::eval_top_k(const Op& op) {
  const Array& x = in(op, 0);
  const Lines lines = lines_of(x, op.attrs.axis);
  const std::int64_t k = call_.size(op.attrs.size);
  if (k > lines.length) stop(rt::ErrorKind::OutOfRange, "top_k of more elements than there are");
  Array result = op.attrs.axis == ir::kAll ? make_vector(kU32, k) : make_matrix(kU32, x.dims[0], k);
  for (std::int64_t line = 0; line < lines.num_lines; ++line) {
    std::vector<std::size_t> order = line_at(x, lines, line).by_rank();
    order.resize(static_cast<std::size_t>(k));
    std::sort(order.begin(), order.end());
    std::copy(order.begin(), order.end(), result.bits.begin() + line * k);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_kth_largest(const Op& op) {
  const Array& x = in(op, 0);
  const Lines lines = lines_of(x, op.attrs.axis);
  const std::int64_t k = call_.size(op.attrs.size);
  if (k > lines.length) stop(rt::ErrorKind::OutOfRange, "kth_largest beyond the last element");
  Array result = op.attrs.axis == ir::kAll ? make_scalar(x.dtype, 0)
                                           : make_matrix(x.dtype, lines.num_lines, 1);
  for (std::int64_t line = 0; line < lines.num_lines; ++line) {
    const Line elements = line_at(x, lines, line);
    const Element value =
        k == 0 ? above_all(x.dtype)
               : elements.elements[elements.by_rank()[static_cast<std::size_t>(k - 1)]];
    result.bits[static_cast<std::size_t>(line)] = plain_value(x.dtype, value);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_mark_largest(const Op& op) {
  const Array& keys = in(op, 0);
  const Lines lines = lines_of(keys, 1);
  const auto k = static_cast<std::int64_t>(in(op, 1).bits[0]);
  Array result = make_out(op);
  for (std::int64_t line = 0; line < lines.num_lines; ++line) {
    const std::vector<std::size_t> order = line_at(keys, lines, line).by_value(true);
    for (std::int64_t i = 0; i < lines.length; ++i) {
      const auto place = static_cast<std::int64_t>(order[static_cast<std::size_t>(i)]);
      result.bits[lines.at(line, place)] = i < k ? 1 : 0;
    }
  }
  out(op) = std::move(result);
}

void Evaluator::eval_list_marked(const Op& op) {
  const Array& marks = in(op, 0);
  Array result = make_out(op);
  const auto length = static_cast<std::size_t>(marks.cols());
  std::size_t next = 0;
  for (std::size_t i = 0; i < marks.bits.size(); ++i) {
    if (marks.bits[i] != 0 && next < result.bits.size()) result.bits[next++] = i % length;
  }
  out(op) = std::move(result);
}

void Evaluator::eval_argsort(const Op& op) {
  const Array& x = in(op, 0);
  const Lines lines = lines_of(x, op.attrs.axis);
  Array result = x;
  result.dtype = kU32;
  for (std::int64_t line = 0; line < lines.num_lines; ++line) {
    const std::vector<std::size_t> order = line_at(x, lines, line).by_value(op.attrs.descending);
    for (std::int64_t i = 0; i < lines.length; ++i) {
      result.bits[lines.at(line, i)] = order[static_cast<std::size_t>(i)];
    }
  }
  out(op) = std::move(result);
}

}  // namespace cinch::interp
