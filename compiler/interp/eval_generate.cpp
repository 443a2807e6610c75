// Leaves, generators, random draws and element-wise ops.
#include <utility>

#include "compiler/interp/evaluator.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/params.h"

namespace cinch::interp {
namespace {

// The element of `array` at (row, col) of a result to which it broadcasts.
std::uint64_t broadcast_at(const Array& array, std::int64_t row, std::int64_t col) {
  if (array.rank == 0) return array.bits[0];
  const std::int64_t r = array.rows() == 1 ? 0 : row;
  const std::int64_t c = array.cols() == 1 ? 0 : col;
  return array.bits[static_cast<std::size_t>(r * array.cols() + c)];
}

// The sizes of the result of an element-wise op; for a scalar [1, 1] with rank 0.
Array broadcast_result(DType dtype, std::span<const Array* const> operands) {
  Array result = make_scalar(dtype, 0);
  for (const Array* array : operands) {
    if (array->rank > result.rank) result.rank = array->rank;
    for (int d = 0; d < 2; ++d) {
      if (array->dims[d] != 1) result.dims[d] = array->dims[d];
    }
  }
  require_room(result.dims[0], result.dims[1]);
  result.bits.assign(static_cast<std::size_t>(result.size()), 0);
  return result;
}

}  // namespace

void Evaluator::eval_const_scalar(const Op& op) {
  const DType dtype = out_type(op).dtype;
  out(op) = make_scalar(dtype, element_of_constant(dtype, op.attrs.bits));
}

void Evaluator::eval_const_array(const Op& op) {
  const ir::Table& table = call_.program.tables[op.attrs.index];
  Array result = make_out(op);
  for (std::size_t i = 0; i < result.bits.size(); ++i) {
    result.bits[i] = element_of_constant(result.dtype, table.bits[i]);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_param(const Op& op) {
  out(op) = call_.param(op.attrs.index);
}

void Evaluator::eval_host_size(const Op& op) {
  const HostValue value = call_.eval(op.attrs.size);
  const DType from = dtype_of(value.type);
  const DType dtype = out_type(op).dtype;
  out(op) = make_scalar(dtype, convert_element(from, dtype, value.bits));
}

void Evaluator::eval_gradient(const Op& op) {
  Array result = make_out(op);
  if (result.bits.size() != call_.inputs.gradient.size()) {
    stop(rt::ErrorKind::InvalidArgument, "the gradient has not rows * cols elements");
  }
  for (std::size_t i = 0; i < result.bits.size(); ++i) {
    result.bits[i] = element_of_f32(call_.inputs.gradient[i]);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_state(const Op& op) {
  out(op) = call_.inputs.states[op.attrs.index];
}

void Evaluator::eval_field(const Op& op) {
  const Array expected = make_out(op);
  const Array& field = call_.inputs.fields[op.attrs.index];
  if (field.dtype != expected.dtype || field.size() != expected.size() ||
      field.rank != expected.rank) {
    stop(rt::ErrorKind::InvalidArgument,
         "field " + call_.program.info.wire.fields[op.attrs.index].name + " does not fit");
  }
  out(op) = field;
}

void Evaluator::eval_count_value(const Op& op) {
  out(op) = make_scalar(kU32, static_cast<Element>(call_.counts[op.attrs.index]));
}

void Evaluator::eval_iota(const Op& op) {
  Array result = make_out(op);
  for (std::size_t i = 0; i < result.bits.size(); ++i) result.bits[i] = i;
  out(op) = std::move(result);
}

void Evaluator::eval_fill(const Op& op) {
  Array result = make_out(op);
  const std::int64_t cols = result.cols();
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.bits[static_cast<std::size_t>(i)] = broadcast_at(in(op, 0), i / cols, i % cols);
  }
  out(op) = std::move(result);
}

// Draws.

lang::DrawStream Evaluator::draws_of(const Op& op, std::size_t iteration_operand) const {
  std::uint32_t site = op.attrs.draw.site;
  if (op.operands.size() > iteration_operand) {
    site += static_cast<std::uint32_t>(in(op, iteration_operand).bits[0]);
  }
  return lang::draw_stream(call_.draw_words().data(), site, op.attrs.draw.shared);
}

void Evaluator::draw_each(const Op& op) {
  const lang::DrawStream stream = draws_of(op, 0);
  Array result = make_out(op);
  for (std::size_t i = 0; i < result.bits.size(); ++i) {
    const auto index = static_cast<lang::u32>(i);
    if (op.kind == ir::OpKind::random_bits) {
      result.bits[i] = lang::random_bits(stream, index);
    } else {
      const bool is_normal = op.kind == ir::OpKind::normal;
      result.bits[i] =
          element_of_f32(is_normal ? lang::normal(stream, index) : lang::random(stream, index));
    }
  }
  out(op) = std::move(result);
}

void Evaluator::eval_random(const Op& op) {
  draw_each(op);
}
void Evaluator::eval_random_bits(const Op& op) {
  draw_each(op);
}
void Evaluator::eval_normal(const Op& op) {
  draw_each(op);
}

void Evaluator::eval_random_index(const Op& op) {
  const lang::DrawStream stream = draws_of(op, 0);
  const auto below = static_cast<lang::u64>(call_.size(op.attrs.size));
  Array result = make_out(op);
  if (result.bits.size() > below) {
    stop(rt::ErrorKind::OutOfRange, "more random indices without repeats than there are");
  }
  const lang::IndexPermutation permutation = lang::index_permutation(stream, below);
  for (std::size_t i = 0; i < result.bits.size(); ++i) {
    result.bits[i] = lang::random_index(permutation, static_cast<lang::u32>(i));
  }
  out(op) = std::move(result);
}

void Evaluator::eval_stochastic_round(const Op& op) {
  const lang::DrawStream stream = draws_of(op, 1);
  Array result = in(op, 0);
  for (std::size_t i = 0; i < result.bits.size(); ++i) {
    const auto index = static_cast<lang::u32>(i);
    Element& x = result.bits[i];
    x = result.dtype == kF64 ? element_of_f64(lang::stochastic_round(f64_of(x), stream, index))
                             : element_of_f32(lang::stochastic_round(f32_of(x), stream, index));
    x = canonical_element(result.dtype, x);
  }
  out(op) = std::move(result);
}

// Element-wise.

void Evaluator::eval_map(const Op& op) {
  const std::size_t arity = op.operands.size();
  const DType dtype = in(op, arity - 1).dtype;
  const Array* operands[3] = {};
  for (std::size_t i = 0; i < arity; ++i) operands[i] = &in(op, i);
  Array result = broadcast_result(out_type(op).dtype, std::span(operands, arity));
  const std::int64_t cols = result.cols();
  Element elements[3] = {};
  for (std::int64_t i = 0; i < result.size(); ++i) {
    for (std::size_t k = 0; k < arity; ++k) {
      elements[k] = broadcast_at(*operands[k], i / cols, i % cols);
    }
    result.bits[static_cast<std::size_t>(i)] =
        evaluate_scalar(op.attrs.scalar_op, dtype, std::span(elements, arity));
  }
  out(op) = std::move(result);
}

void Evaluator::eval_call_extern(const Op& op) {
  const rt::ExternInfo& function = call_.program.info.externs[op.attrs.index];
  if (!call_.inputs.call_extern) {
    stop(rt::ErrorKind::Unavailable,
         "`" + function.name + "` is a C++ function, and no compiler is at hand");
  }
  std::vector<const Array*> operands;
  operands.reserve(op.operands.size());
  for (std::size_t i = 0; i < op.operands.size(); ++i) operands.push_back(&in(op, i));
  Array result = broadcast_result(out_type(op).dtype, operands);
  const std::int64_t cols = result.cols();
  std::vector<Elements> columns(operands.size(), Elements(result.bits.size()));
  for (std::size_t k = 0; k < operands.size(); ++k) {
    for (std::int64_t i = 0; i < result.size(); ++i) {
      columns[k][static_cast<std::size_t>(i)] = broadcast_at(*operands[k], i / cols, i % cols);
    }
  }
  rt::Result<Elements> computed = call_.inputs.call_extern(function, columns, result.bits.size());
  if (!computed) throw RunFailure{computed.error()};
  result.bits = std::move(*computed);
  for (Element& x : result.bits) x = canonical_element(result.dtype, x);
  out(op) = std::move(result);
}

void Evaluator::eval_convert(const Op& op) {
  Array result = in(op, 0);
  const DType from = result.dtype;
  result.dtype = out_type(op).dtype;
  for (Element& x : result.bits) x = convert_element(from, result.dtype, x);
  out(op) = std::move(result);
}

void Evaluator::eval_bitcast(const Op& op) {
  Array result = in(op, 0);
  const DType from = result.dtype;
  result.dtype = out_type(op).dtype;
  for (Element& x : result.bits) x = bitcast_element(from, result.dtype, x);
  out(op) = std::move(result);
}

}  // namespace cinch::interp
