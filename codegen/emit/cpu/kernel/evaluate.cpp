#include "codegen/emit/cpu/kernel/evaluate.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "codegen/kir/compute_type.h"

namespace cinch::codegen {

using kir::ComputeType;
using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

namespace {

double number_of(std::uint64_t bits, ComputeType type) {
  const auto word = static_cast<std::uint32_t>(bits);
  if (type == ComputeType::F32) return std::bit_cast<float>(word);
  return type == ComputeType::I32 ? static_cast<std::int32_t>(word) : static_cast<double>(word);
}

std::optional<double> compared(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    case ScalarOp::gt:
      return a > b;
    case ScalarOp::ge:
      return a >= b;
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    default:
      return std::nullopt;
  }
}

// The operation rounds once, as the kernel's does.
std::optional<double> of_floats(ScalarOp op, float a, float b) {
  const auto number = [](float x) -> std::optional<double> {
    return std::isnan(x) ? std::nullopt : std::optional<double>(x);
  };
  switch (op) {
    case ScalarOp::add:
      return number(a + b);
    case ScalarOp::sub:
      return number(a - b);
    case ScalarOp::mul:
      return number(a * b);
    case ScalarOp::neg:
      return number(-a);
    case ScalarOp::abs:
      return number(std::fabs(a));
    default:
      return std::nullopt;
  }
}

// The low 32 bits, or nothing for shifts beyond them.
std::optional<std::uint32_t> of_words(ScalarOp op, std::uint32_t a, std::uint32_t b) {
  constexpr std::uint32_t kBits = 32;
  switch (op) {
    case ScalarOp::add:
      return a + b;
    case ScalarOp::sub:
      return a - b;
    case ScalarOp::mul:
      return a * b;
    case ScalarOp::neg:
      return 0 - a;
    case ScalarOp::bit_and:
      return a & b;
    case ScalarOp::bit_or:
      return a | b;
    case ScalarOp::bit_xor:
      return a ^ b;
    case ScalarOp::shl:
      return b < kBits ? std::optional(a << b) : std::nullopt;
    case ScalarOp::shr:  // of a signed number that is not negative, too
      return b < kBits && a <= INT32_MAX ? std::optional(a >> b) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<double> of_truths(ScalarOp op, bool a, bool b) {
  switch (op) {
    case ScalarOp::bit_and:
      return a && b;
    case ScalarOp::bit_or:
      return a || b;
    case ScalarOp::bit_not:
      return !a;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::uint32_t bits_of_number(double number, ComputeType type) {
  if (type == ComputeType::F32) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return static_cast<std::uint32_t>(static_cast<std::int64_t>(number));
}

std::optional<double> CpuEvaluator::of(ValueId value) {
  const auto [at, is_new] = known_.try_emplace(value.index());
  if (is_new) {
    const std::optional<double> found = find(value);
    known_[value.index()] = found;
    return found;
  }
  return at->second;
}

std::optional<double> CpuEvaluator::find(ValueId value) {
  if (value == variable_) return at_;
  const Instr* made = facts_.definition(value);
  const ComputeType type = facts_.type(value);
  const bool is_known = type == ComputeType::F32 || type == ComputeType::I32 ||
                        type == ComputeType::U32 || type == ComputeType::Bool;
  if (made == nullptr || !is_known) return std::nullopt;
  switch (made->kind) {
    case InstrKind::constant: {
      const double number = number_of(made->bits, type);
      return std::isnan(number) ? std::nullopt : std::optional(number);
    }
    case InstrKind::scalar:
      return scalar(*made);
    case InstrKind::convert:
      return convert(*made);
    default:
      return std::nullopt;
  }
}

std::optional<double> CpuEvaluator::scalar(const Instr& instr) {
  const ComputeType type = facts_.type(instr.results[0]);
  const ComputeType from = facts_.type(instr.operands[0]);
  const std::optional<double> a = of(instr.operands[0]);
  if (!a) return std::nullopt;
  if (instr.scalar_op == ScalarOp::select) return of(instr.operands[*a != 0 ? 1 : 2]);
  std::optional<double> b = 0.0;
  if (instr.operands.size() > 1) b = of(instr.operands[1]);
  if (!b || instr.operands.size() > 2) return std::nullopt;
  if (type == ComputeType::Bool) {
    return from == ComputeType::Bool ? of_truths(instr.scalar_op, *a != 0, *b != 0)
                                     : compared(instr.scalar_op, *a, *b);
  }
  if (type == ComputeType::F32 && instr.dtype == kF32) {
    return of_floats(instr.scalar_op, static_cast<float>(*a), static_cast<float>(*b));
  }
  if (instr.dtype != kI32 && instr.dtype != kU32) return std::nullopt;
  const auto word = of_words(instr.scalar_op, bits_of_number(*a, type), bits_of_number(*b, type));
  return word ? std::optional(number_of(*word, type)) : std::nullopt;
}

// Numbers that the type holds stay as they are.
std::optional<double> CpuEvaluator::convert(const Instr& instr) {
  const std::optional<double> x = of(instr.operands[0]);
  const DType to = instr.dtype;
  constexpr double kMostExact = 1 << 24;
  if (!x || *x != std::floor(*x)) return std::nullopt;
  if (to == kF32) return std::abs(*x) <= kMostExact ? x : std::nullopt;
  if (!is_int(to) || to.bits > 32) return std::nullopt;
  const int magnitude_bits = to.bits - (is_signed_int(to) ? 1 : 0);
  const double top = std::ldexp(1.0, magnitude_bits) - 1;
  const double low = is_signed_int(to) ? -top - 1 : 0;
  const bool is_zero_with_sign = *x == 0 && std::signbit(*x);
  return *x >= low && *x <= top && !is_zero_with_sign ? x : std::nullopt;
}

}  // namespace cinch::codegen
