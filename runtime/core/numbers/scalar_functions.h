// The language's own function for each element-wise operation, on numbers of a C++ type: for
// elements (scalar_eval.h) and for host expressions.
#pragma once
#include <type_traits>

#include "runtime/core/check.h"
#include "runtime/core/lang.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch {

template <typename T>
T evaluate_float(ScalarOp op, T a, T b, T c) {
  switch (op) {
    case ScalarOp::sqrt:
      return lang::sqrt(a);
    case ScalarOp::rsqrt:
      return lang::rsqrt(a);
    case ScalarOp::exp:
      return lang::exp(a);
    case ScalarOp::exp2:
      return lang::exp2(a);
    case ScalarOp::log:
      return lang::log(a);
    case ScalarOp::log1p:
      return lang::log1p(a);
    case ScalarOp::log2:
      return lang::log2(a);
    case ScalarOp::sin:
      return lang::sin(a);
    case ScalarOp::cos:
      return lang::cos(a);
    case ScalarOp::tanh:
      return lang::tanh(a);
    case ScalarOp::floor:
      return lang::floor(a);
    case ScalarOp::ceil:
      return lang::ceil(a);
    case ScalarOp::round:
      return lang::round(a);
    case ScalarOp::trunc:
      return lang::trunc(a);
    case ScalarOp::pow:
      return lang::pow(a, b);
    case ScalarOp::fma:
      return lang::fma(a, b, c);
    default:
      CINCH_BUG("operation not defined for floats");
  }
}

template <typename T>
T evaluate_int(ScalarOp op, T a, T b, int width) {
  switch (op) {
    case ScalarOp::bit_not:
      return lang::bit_not(a, width);
    case ScalarOp::bit_and:
      return a & b;
    case ScalarOp::bit_or:
      return a | b;
    case ScalarOp::bit_xor:
      return a ^ b;
    case ScalarOp::shl:
      return lang::shl(a, b, width);
    case ScalarOp::shr:
      return lang::shr(a, b, width);
    case ScalarOp::ceil_div:
      return lang::ceil_div(a, b);
    default:
      return a;  // floor, ceil, round, trunc of an integer
  }
}

// Operations of the operands' own type.
template <typename T>
T evaluate_number(ScalarOp op, T a, T b, T c, int width) {
  switch (op) {
    case ScalarOp::neg:
      return lang::neg(a);
    case ScalarOp::abs:
      return lang::abs(a);
    case ScalarOp::sign:
      return lang::sign(a);
    case ScalarOp::add:
      return lang::add(a, b);
    case ScalarOp::sub:
      return lang::sub(a, b);
    case ScalarOp::mul:
      return lang::mul(a, b);
    case ScalarOp::div:
      return lang::div(a, b);
    case ScalarOp::mod:
      return lang::mod(a, b);
    case ScalarOp::min:
      return lang::min(a, b);
    case ScalarOp::max:
      return lang::max(a, b);
    case ScalarOp::divide_or_zero:
      return lang::divide_or_zero(a, b);
    case ScalarOp::clamp:
      return lang::clamp(a, b, c);
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>)
    return evaluate_float(op, a, b, c);
  else
    return evaluate_int(op, a, b, width);
}

template <typename T>
bool compare_scalars(ScalarOp op, T a, T b) {
  switch (op) {
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    case ScalarOp::gt:
      return a > b;
    case ScalarOp::ge:
      return a >= b;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    return op == ScalarOp::isnan ? lang::isnan(a) : lang::isfinite(a);
  }
  CINCH_BUG("not a comparison");
}

}  // namespace cinch
