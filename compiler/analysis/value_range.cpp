// Bodies of value_range.h: intervals of reals, from operands to results. Ends are whole numbers
// wherever results are rounded, so that no rounding leaves an interval.
#include "compiler/analysis/value_range.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace cinch::analysis {
namespace {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kExactF64 = 9007199254740992.0;  // 2^53: up to it f64 holds every integer
constexpr double kExactF32 = 16777216.0;          // 2^24: likewise f32

struct Interval {
  double least = 0, greatest = 0;
  bool may_be_nan = false;
};

Interval hull(const Interval& a, const Interval& b) {
  return {std::min(a.least, b.least), std::max(a.greatest, b.greatest),
          a.may_be_nan || b.may_be_nan};
}

bool lies_within(const Interval& x, const Interval& bounds) {
  return x.least >= bounds.least && x.greatest <= bounds.greatest;
}

Interval of_type(DType dtype) {
  if (is_bool(dtype)) return {0, 1};
  if (is_float(dtype)) return {-kInfinity, kInfinity, true};
  if (is_signed_int(dtype)) {
    return {-std::ldexp(1.0, dtype.bits - 1), std::ldexp(1.0, dtype.bits - 1) - 1};
  }
  return {0, std::ldexp(1.0, dtype.bits) - 1};
}

Interval of_word(DType dtype, std::uint64_t bits) {
  if (is_float(dtype)) {
    auto x = std::bit_cast<double>(bits);
    if (std::isnan(x) || dtype.bits < 32) return of_type(dtype);
    if (dtype == kF32) x = static_cast<float>(x);
    return {x, x};
  }
  const double x = is_signed_int(dtype) ? static_cast<double>(static_cast<std::int64_t>(bits))
                                        : static_cast<double>(bits);
  return {x, x};
}

// Of two operands the smaller: where one is NaN, the other.
Interval smaller(const Interval& a, const Interval& b) {
  Interval result{std::min(a.least, b.least), std::min(a.greatest, b.greatest)};
  if (a.may_be_nan) result = hull(result, {b.least, b.greatest});
  if (b.may_be_nan) result = hull(result, {a.least, a.greatest});
  result.may_be_nan = a.may_be_nan && b.may_be_nan;
  return result;
}

Interval negated(const Interval& x) {
  return {-x.greatest, -x.least, x.may_be_nan};
}

Interval larger(const Interval& a, const Interval& b) {
  return negated(smaller(negated(a), negated(b)));
}

class Ranges {
 public:
  Ranges(const ir::Program& program, const ir::Function& function)
      : program_(program), function_(function) {}

  Interval of(ValueId value) {
    if (const auto known = known_.find(value); known != known_.end()) return known->second;
    const DType dtype = type(value).dtype;
    Interval found = result(function_.ops[function_.values[value.index()].def.index()], dtype);
    // An integer that would leave its type wraps: it may be any.
    if (!is_float(dtype) && !lies_within(found, of_type(dtype))) found = of_type(dtype);
    known_.emplace(value, found);
    return found;
  }

 private:
  const ir::Type& type(ValueId value) const { return function_.values[value.index()].type; }

  Interval result(const Op& op, DType dtype) {
    switch (op.kind) {
      case OpKind::const_scalar:
        return of_word(dtype, op.attrs.bits);
      case OpKind::const_array:
        return of_table(program_.tables[op.attrs.index]);
      case OpKind::random:
        return {0, 1};
      case OpKind::map:
        return mapped(op, dtype);
      case OpKind::convert:
        return converted(of(op.operands[0]), type(op.operands[0]).dtype, dtype);
      case OpKind::stochastic_round:
        return to_whole(of(op.operands[0]));
      case OpKind::unpack:
        return {0, std::ldexp(1.0, static_cast<int>(op.attrs.bits)) - 1};
      case OpKind::chunk:
        return hull(of(op.operands[0]), {0, 0});
      case OpKind::concat:
        return of_all(op);
      case OpKind::fill:
      case OpKind::gather:
      case OpKind::gather_along:
      case OpKind::slice:
      case OpKind::reshape:
      case OpKind::transpose:
      case OpKind::keep:
      case OpKind::unchunk:
      case OpKind::all_gather:
      case OpKind::all_to_all:
      case OpKind::broadcast:
        return of(op.operands[0]);
      default:
        return of_type(dtype);
    }
  }

  static Interval of_table(const ir::Table& table) {
    if (table.bits.empty()) return of_type(table.type.dtype);
    Interval found = of_word(table.type.dtype, table.bits[0]);
    for (const std::uint64_t bits : table.bits) {
      found = hull(found, of_word(table.type.dtype, bits));
    }
    return found;
  }

  Interval of_all(const Op& op) {
    Interval found = of(op.operands[0]);
    for (const ValueId operand : op.operands) found = hull(found, of(operand));
    return found;
  }

  Interval mapped(const Op& op, DType dtype) {
    const auto operand = [&](std::size_t i) { return of(op.operands[i]); };
    switch (op.attrs.scalar_op) {
      case ScalarOp::neg:
        return negated(operand(0));
      case ScalarOp::abs:
        return larger(operand(0), negated(operand(0)));
      case ScalarOp::sign:
        return {-1, 1, operand(0).may_be_nan};
      case ScalarOp::floor:
      case ScalarOp::ceil:
      case ScalarOp::round:
      case ScalarOp::trunc:
        return to_whole(operand(0));
      case ScalarOp::min:
        return smaller(operand(0), operand(1));
      case ScalarOp::max:
        return larger(operand(0), operand(1));
      case ScalarOp::clamp:
        return smaller(larger(operand(0), operand(1)), operand(2));
      case ScalarOp::select:
        return hull(operand(1), operand(2));
      case ScalarOp::bit_and:
        return masked(operand(0), operand(1), dtype);
      case ScalarOp::add:
      case ScalarOp::sub:
      case ScalarOp::mul:
        return computed(op.attrs.scalar_op, operand(0), operand(1), dtype);
      default:
        return of_type(dtype);
    }
  }

  static Interval to_whole(const Interval& x) {
    return {std::floor(x.least), std::ceil(x.greatest), x.may_be_nan};
  }

  static Interval masked(const Interval& a, const Interval& b, DType dtype) {
    if (a.least < 0 || b.least < 0) return of_type(dtype);
    return {0, std::min(a.greatest, b.greatest)};
  }

  static Interval computed(ScalarOp how, const Interval& a, const Interval& b, DType dtype) {
    if (how == ScalarOp::sub) return computed(ScalarOp::add, a, negated(b), dtype);
    const auto join = [how](double x, double y) { return how == ScalarOp::add ? x + y : x * y; };
    const double ends[] = {join(a.least, b.least), join(a.least, b.greatest),
                           join(a.greatest, b.least), join(a.greatest, b.greatest)};
    const double most = dtype == kF32 ? kExactF32 : kExactF64;
    for (const double end : ends) {
      const bool is_exact = std::abs(end) <= most && end == std::trunc(end);
      if (!is_exact || (is_float(dtype) && dtype.bits < 32)) return of_type(dtype);
    }
    return {*std::ranges::min_element(ends), *std::ranges::max_element(ends),
            a.may_be_nan || b.may_be_nan};
  }

  // Integers saturate, of floats after truncation; a NaN becomes 0.
  static Interval converted(const Interval& x, DType from, DType to) {
    if (is_bool(to)) return of_type(to);
    if (is_float(to)) {
      const double most = to == kF64 ? kExactF64 : to == kF32 ? kExactF32 : 0;
      const bool is_exact = !is_float(from) && lies_within(x, {-most, most});
      return is_exact || (to == kF64 && is_float(from)) ? x : of_type(to);
    }
    const Interval type = of_type(to);
    const auto saturated = [&](double end) {
      return std::clamp(std::trunc(end), type.least, type.greatest);
    };
    const Interval found{saturated(x.least), saturated(x.greatest)};
    return x.may_be_nan ? hull(found, {0, 0}) : found;
  }

  const ir::Program& program_;
  const ir::Function& function_;
  std::unordered_map<ValueId, Interval> known_;
};

}  // namespace

std::optional<IntegerRange> find_integer_range(const ir::Program& program,
                                               const ir::Function& function, ir::ValueId value) {
  const Interval found = Ranges(program, function).of(value);
  if (!lies_within(found, {-kExactF64, kExactF64})) return std::nullopt;
  return IntegerRange{static_cast<std::int64_t>(found.least),
                      static_cast<std::int64_t>(found.greatest)};
}

}  // namespace cinch::analysis
