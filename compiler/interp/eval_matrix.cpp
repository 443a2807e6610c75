// Matrix ops. Every sum of products is an ordered reduction that begins at +0.
#include <utility>

#include "compiler/interp/evaluator.h"
#include "compiler/ir/scalar_eval.h"
#include "runtime/core/ordered_reduce.h"

namespace cinch::interp {
namespace {

using Element = std::uint64_t;

Element apply(ScalarOp op, DType dtype, Element a, Element b = 0) {
  const Element operands[] = {a, b};
  return ir::evaluate_scalar(op, dtype, operands);
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

// A matrix by columns.
class Columns {
 public:
  explicit Columns(Array& matrix) : matrix_(matrix) {}
  Element& at(std::int64_t row, std::int64_t col) {
    return matrix_.bits[static_cast<std::size_t>(row * matrix_.dims[1] + col)];
  }
  Element dot_of(std::int64_t a, std::int64_t b) {
    return dot(
        matrix_.dtype, matrix_.dims[0],
        [&](std::size_t i) { return at(static_cast<std::int64_t>(i), a); },
        [&](std::size_t i) { return at(static_cast<std::int64_t>(i), b); });
  }
  // column b -= dot * column a
  void take_away(std::int64_t a, std::int64_t b) {
    const Element share = dot_of(a, b);
    for (std::int64_t r = 0; r < matrix_.dims[0]; ++r) {
      const Element part = apply(ScalarOp::mul, matrix_.dtype, share, at(r, a));
      at(r, b) = apply(ScalarOp::sub, matrix_.dtype, at(r, b), part);
    }
  }
  void normalize(std::int64_t col) {
    const Element norm = apply(ScalarOp::sqrt, matrix_.dtype, dot_of(col, col));
    for (std::int64_t r = 0; r < matrix_.dims[0]; ++r) {
      at(r, col) = apply(ScalarOp::divide_or_zero, matrix_.dtype, at(r, col), norm);
    }
  }

 private:
  Array& matrix_;
};

}  // namespace

void Evaluator::eval_matmul(const Op& op) {
  const Array& a = in(op, 0);
  const Array& b = in(op, 1);
  Array result = make_matrix(a.dtype, a.dims[0], b.dims[1]);
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

// Each column, made of length 1, is taken out of all later ones at once: what makes the
// Gram-Schmidt process the modified one.
void Evaluator::eval_orthonormalize(const Op& op) {
  Array result = in(op, 0);
  Columns columns(result);
  for (std::int64_t j = 0; j < result.dims[1]; ++j) {
    columns.normalize(j);
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
    stop(rt::ErrorKind::InvalidArgument, "hadamard: the row length is no power of two");
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
  const Element scale = apply(ScalarOp::rsqrt, dtype, ir::convert_element(kU64, dtype, length));
  for (Element& x : result.bits) x = apply(ScalarOp::mul, dtype, x, scale);
}

}  // namespace cinch::interp
