// Filters, selection and sorting. One order of values: NaN counts highest for top_k and
// kth_largest and last for argsort; -0 equals +0; ties go to the lower index.
#include <fmt/format.h>

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
  // The 0-th largest value.
  const Element above_all =
      is_float(x.dtype)
          ? convert_element(kF64, x.dtype, element_of_f64(std::numeric_limits<double>::infinity()))
          : max_int(x.dtype);
  for (std::int64_t line = 0; line < lines.num_lines; ++line) {
    const Line elements = line_at(x, lines, line);
    const Element value =
        k == 0 ? above_all : elements.elements[elements.by_rank()[static_cast<std::size_t>(k - 1)]];
    // +0 for both zeros, the canonical NaN for all NaNs.
    const bool is_zero = is_float(x.dtype) && f64_of(convert_element(x.dtype, kF64, value)) == 0;
    result.bits[static_cast<std::size_t>(line)] = is_zero ? 0
                                                  : is_float(x.dtype)
                                                      ? canonical_element(x.dtype, value)
                                                      : value;
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

// Gathers, slices, shapes, packing and stores.

// A program checks what it cannot prove, so an index out of bounds here is a bug of the compiler.
std::int64_t Evaluator::checked_index(const Array& index, std::size_t i, std::int64_t limit) const {
  const Element value = index.bits[i];
  if (value >= static_cast<Element>(limit)) {
    stop(rt::ErrorKind::Internal, fmt::format("index {} is not below {} and was not checked",
                                              static_cast<std::int64_t>(value), limit));
  }
  return static_cast<std::int64_t>(value);
}

void Evaluator::eval_gather(const Op& op) {
  const Array& x = in(op, 0);
  const Array& index = in(op, 1);
  const bool is_matrix = x.rank == 2;
  const std::int64_t count = x.dims[0];
  const auto width = static_cast<std::size_t>(is_matrix ? x.dims[1] : 1);
  Array result{x.dtype, 0, {1, 1}, {}};
  for (int d = 0; d < index.rank; ++d) result.dims[result.rank++] = index.dims[d];
  if (is_matrix) result.dims[result.rank++] = x.dims[1];
  for (std::size_t i = 0; i < index.bits.size(); ++i) {
    const auto begin = static_cast<std::size_t>(checked_index(index, i, count)) * width;
    for (std::size_t j = 0; j < width; ++j) result.bits.push_back(x.bits[begin + j]);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_gather_along(const Op& op) {
  const Array& x = in(op, 0);
  const Array& index = in(op, 1);
  Array result = index;
  result.dtype = x.dtype;
  for (std::int64_t r = 0; r < index.dims[0]; ++r) {
    for (std::int64_t c = 0; c < index.dims[1]; ++c) {
      const auto at = static_cast<std::size_t>(r * index.dims[1] + c);
      const std::int64_t picked = checked_index(index, at, x.dims[op.attrs.axis]);
      const std::int64_t from =
          op.attrs.axis == 1 ? r * x.dims[1] + picked : picked * x.dims[1] + c;
      result.bits[at] = x.bits[static_cast<std::size_t>(from)];
    }
  }
  out(op) = std::move(result);
}

void Evaluator::eval_slice(const Op& op) {
  const Array& x = in(op, 0);
  Array result = make_out(op);
  const std::int64_t begin = call_.size(op.attrs.size);
  if (begin + result.dims[0] > x.dims[0]) {
    stop(rt::ErrorKind::OutOfRange,
         fmt::format("slice {}..{} of {} elements", begin, begin + result.dims[0], x.dims[0]));
  }
  const std::int64_t width = x.rank == 2 ? x.dims[1] : 1;
  const auto first = x.bits.begin() + begin * width;
  result.bits.assign(first, first + result.size());
  out(op) = std::move(result);
}

void Evaluator::eval_concat(const Op& op) {
  Array result = make_out(op);
  const bool is_by_row = op.attrs.axis == 1;
  const std::int64_t rows = is_by_row ? result.dims[0] : 1;
  result.bits.clear();
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Array& part = in(op, i);
      const std::int64_t width = is_by_row ? part.dims[1] : part.size();
      const auto begin = part.bits.begin() + row * width;
      result.bits.insert(result.bits.end(), begin, begin + width);
    }
  }
  out(op) = std::move(result);
}

void Evaluator::eval_reshape(const Op& op) {
  Array result = make_out(op);
  if (result.bits.size() != in(op, 0).bits.size()) {
    stop(rt::ErrorKind::Internal,
         fmt::format("reshape of {} elements to {}", in(op, 0).bits.size(), result.bits.size()));
  }
  result.bits = in(op, 0).bits;
  out(op) = std::move(result);
}

void Evaluator::eval_keep(const Op& op) {
  out(op) = in(op, 0);
}

void Evaluator::eval_transpose(const Op& op) {
  const Array& x = in(op, 0);
  Array result = make_matrix(x.dtype, x.dims[1], x.dims[0]);
  for (std::int64_t r = 0; r < x.dims[0]; ++r) {
    for (std::int64_t c = 0; c < x.dims[1]; ++c) {
      result.bits[static_cast<std::size_t>(c * x.dims[0] + r)] =
          x.bits[static_cast<std::size_t>(r * x.dims[1] + c)];
    }
  }
  out(op) = std::move(result);
}

void Evaluator::eval_chunk(const Op& op) {
  Array result = make_out(op);
  const Elements& from = in(op, 0).bits;
  if (result.bits.size() < from.size()) stop(rt::ErrorKind::Internal, "chunk loses elements");
  std::copy(from.begin(), from.end(), result.bits.begin());
  out(op) = std::move(result);
}

void Evaluator::eval_unchunk(const Op& op) {
  Array result = make_out(op);
  const Elements& from = in(op, 0).bits;
  if (result.bits.size() > from.size()) {
    stop(rt::ErrorKind::OutOfRange,
         fmt::format("unchunk to {} elements of {}", result.bits.size(), from.size()));
  }
  result.bits.assign(from.begin(), from.begin() + result.size());
  out(op) = std::move(result);
}

void Evaluator::eval_pack(const Op& op) {
  const Elements& from = in(op, 0).bits;
  const std::size_t width = op.attrs.bits;
  Array result = make_vector(kU8, static_cast<std::int64_t>((from.size() * width + 7) / 8));
  for (std::size_t bit = 0; bit < from.size() * width; ++bit) {
    const Element one = from[bit / width] >> (bit % width) & 1;
    result.bits[bit / 8] |= one << (bit % 8);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_unpack(const Op& op) {
  const Elements& from = in(op, 0).bits;
  const std::size_t width = op.attrs.bits;
  Array result = make_out(op);
  if (result.bits.size() * width > from.size() * 8) {
    stop(rt::ErrorKind::OutOfRange, "unpack of more elements than the bytes hold");
  }
  for (std::size_t bit = 0; bit < result.bits.size() * width; ++bit) {
    const Element one = from[bit / 8] >> (bit % 8) & 1;
    result.bits[bit / width] |= one << (bit % width);
  }
  out(op) = std::move(result);
}

// Stores.

void Evaluator::eval_scatter(const Op& op) {
  Array result = in(op, 0);
  const Array& index = in(op, 1);
  const Array& values = in(op, 2);
  const std::size_t width = result.rank == 2 ? static_cast<std::size_t>(result.dims[1]) : 1;
  for (std::size_t i = 0; i < index.bits.size(); ++i) {
    const auto begin = static_cast<std::size_t>(checked_index(index, i, result.dims[0])) * width;
    for (std::size_t j = 0; j < width; ++j) result.bits[begin + j] = values.bits[i * width + j];
  }
  out(op) = std::move(result);
}

void Evaluator::scatter_joined(const Op& op, ScalarOp joins, Array result) {
  const Array& index = in(op, 0);
  const Array& values = in(op, 1);
  for (std::size_t i = 0; i < index.bits.size(); ++i) {
    Element& cell = result.bits[static_cast<std::size_t>(checked_index(index, i, result.dims[0]))];
    const Element operands[] = {cell, values.bits[i]};
    cell = evaluate_scalar(joins, result.dtype, operands);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_scatter_add(const Op& op) {
  scatter_joined(op, ScalarOp::add, make_out(op));
}

void Evaluator::eval_scatter_reduce(const Op& op) {
  Array result = make_out(op);
  const std::uint64_t identity = identity_constant(op.attrs.scalar_op, result.dtype);
  std::ranges::fill(result.bits, element_of_constant(result.dtype, identity));
  scatter_joined(op, op.attrs.scalar_op, std::move(result));
}

void Evaluator::eval_histogram(const Op& op) {
  Array result = make_out(op);
  const Elements& values = in(op, 0).bits;
  const bool is_masked = op.operands.size() > 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_masked && !in(op, 1).bits[i]) continue;
    if (values[i] < result.bits.size()) ++result.bits[values[i]];
  }
  out(op) = std::move(result);
}

}  // namespace cinch::interp
