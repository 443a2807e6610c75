#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>

#include "compiler/analysis/rank_sums.h"
#include "compiler/ir/types.h"
#include "runtime/core/numbers/number_range.h"

namespace cinch::analysis {
namespace {

constexpr std::int64_t kWordBits = 64;
// For wider ranges, sums over many ranks need more bits than the elements have.
constexpr std::int64_t kMostSpan = 65535;

std::int64_t span_of(const IntegerRange& range) {
  return std::max<std::int64_t>(range.greatest - range.least, 1);
}

// Number of elements that share words, if it is a constant.
std::int64_t known_elements(const HostExprPool& exprs, const ir::Op& op, const ir::Type& type,
                            std::int64_t otherwise) {
  std::int64_t elements = 1;
  for (int d = op.kind == ir::OpKind::reduce_scatter ? 1 : 0; d < type.rank; ++d) {
    const auto size = ir::constant_size(exprs, type.dims[d]);
    if (!size) return otherwise;
    elements *= *size;
  }
  return elements;
}

}  // namespace

std::optional<PackedSum> find_packed_sum(const ir::Program& program, const ir::Function& function,
                                         const ir::Op& op) {
  const bool adds = op.kind == ir::OpKind::all_reduce || op.kind == ir::OpKind::reduce_scatter;
  if (!adds || function.combiners[op.attrs.combiner.index()].op != ScalarOp::add)
    return std::nullopt;
  const ir::Type& type = function.values[op.operands[0].index()].type;
  const bool is_whole_word = type.dtype.bits == 32 || type.dtype.bits == 64;
  if (type.rank == 0 || !is_int(type.dtype) || !is_whole_word) return std::nullopt;
  const HostExprPool& exprs = *program.info.exprs;
  for (int d = 0; d < type.rank; ++d) {
    if (exprs.has_count(type.dims[d])) return std::nullopt;
  }
  const auto range = find_integer_range(program, function, op.operands[0]);
  if (!range || span_of(*range) > kMostSpan) return std::nullopt;
  const auto two_ranks = static_cast<std::uint64_t>(2 * span_of(*range));
  const std::int64_t most_fields = kWordBits / std::bit_width(two_ranks);
  const std::int64_t filled = std::min(most_fields, known_elements(exprs, op, type, most_fields));
  if (filled * type.dtype.bits <= kWordBits) return std::nullopt;
  return PackedSum{*range, most_fields};
}

HostExprId field_bits(HostExprPool& exprs, const PackedSum& sum) {
  const HostExprId greatest = exprs.mul(exprs.world(), exprs.const_int(span_of(sum.range)));
  const HostExprId num_values = exprs.add(greatest, exprs.const_int(1));
  const HostExprId log = exprs.make(HostOp::Log2, exprs.cast(num_values, HostType::F64));
  return exprs.cast(exprs.make(HostOp::Ceil, log), HostType::Int);
}

HostExprId num_packed_together(HostExprPool& exprs, const ir::Op& op, const ir::Type& type) {
  return op.kind == ir::OpKind::reduce_scatter ? type.dims[1] : ir::element_count(exprs, type);
}

HostExprId num_sum_words(HostExprPool& exprs, const PackedSum& sum, HostExprId num_elements) {
  const HostExprId fitting = exprs.div(exprs.const_int(kWordBits), field_bits(exprs, sum));
  return exprs.ceil_div(num_elements, exprs.min(fitting, exprs.const_int(sum.most_fields)));
}

std::optional<std::int64_t> packed_sum_bytes(const ir::Program& program,
                                             const ir::Function& function, const ir::Op& op,
                                             const HostEnv& env) {
  const auto sum = find_packed_sum(program, function, op);
  if (!sum) return std::nullopt;
  HostExprPool exprs = *program.info.exprs;
  const ir::Type& type = function.values[op.operands[0].index()].type;
  const HostExprId words = num_sum_words(exprs, *sum, num_packed_together(exprs, op, type));
  const auto found = exprs.eval_int(words, env);
  return found ? std::optional(kWordBits / 8 * *found) : std::nullopt;
}

namespace {

using ir::Op;
using ir::OpKind;
using ir::ValueId;

constexpr double kExactF64 = 9007199254740992.0;  // 2^53: up to it f64 holds every integer
constexpr double kExactF32 = 16777216.0;          // 2^24: likewise f32

bool lies_within(const NumberRange& x, const NumberRange& bounds) {
  return x.low >= bounds.low && x.high <= bounds.high;
}

NumberRange of_word(DType dtype, std::uint64_t bits) {
  if (is_float(dtype)) {
    auto x = std::bit_cast<double>(bits);
    if (std::isnan(x) || dtype.bits < 32) return all_numbers(dtype);
    if (dtype == kF32) x = static_cast<float>(x);
    return {x, x};
  }
  const double x = is_signed_int(dtype) ? static_cast<double>(static_cast<std::int64_t>(bits))
                                        : static_cast<double>(bits);
  return {x, x};
}

class Ranges {
 public:
  Ranges(const ir::Program& program, const ir::Function& function)
      : program_(program), function_(function) {}

  NumberRange of(ValueId value) {
    if (const auto known = known_.find(value); known != known_.end()) return known->second;
    const DType dtype = type(value).dtype;
    NumberRange found = result(function_.ops[function_.values[value.index()].def.index()], dtype);
    // An integer that exceeds its type wraps, so it may have any value.
    if (!is_float(dtype) && !lies_within(found, all_numbers(dtype))) found = all_numbers(dtype);
    known_.emplace(value, found);
    return found;
  }

 private:
  const ir::Type& type(ValueId value) const { return function_.values[value.index()].type; }

  NumberRange result(const Op& op, DType dtype) {
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
        return joined(of(op.operands[0]), {0, 0});
      case OpKind::concat: {
        NumberRange found = of(op.operands[0]);
        for (const ValueId operand : op.operands) found = joined(found, of(operand));
        return found;
      }
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
      case OpKind::broadcast_from:
        return of(op.operands[0]);
      default:
        return all_numbers(dtype);
    }
  }

  static NumberRange of_table(const ir::Table& table) {
    if (table.bits.empty()) return all_numbers(table.type.dtype);
    NumberRange found = of_word(table.type.dtype, table.bits[0]);
    for (const std::uint64_t bits : table.bits) {
      found = joined(found, of_word(table.type.dtype, bits));
    }
    return found;
  }

  NumberRange mapped(const Op& op, DType dtype) {
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
        return joined(operand(1), operand(2));
      case ScalarOp::bit_and:
        return masked(operand(0), operand(1), dtype);
      case ScalarOp::add:
      case ScalarOp::sub:
      case ScalarOp::mul:
        return computed(op.attrs.scalar_op, operand(0), operand(1), dtype);
      default:
        return all_numbers(dtype);
    }
  }

  static NumberRange to_whole(const NumberRange& x) {
    return {std::floor(x.low), std::ceil(x.high), x.may_be_nan};
  }

  static NumberRange masked(const NumberRange& a, const NumberRange& b, DType dtype) {
    if (a.low < 0 || b.low < 0) return all_numbers(dtype);
    return {0, std::min(a.high, b.high)};
  }

  static NumberRange computed(ScalarOp how, const NumberRange& a, const NumberRange& b,
                              DType dtype) {
    if (how == ScalarOp::sub) return computed(ScalarOp::add, a, negated(b), dtype);
    const auto join = [how](double x, double y) { return how == ScalarOp::add ? x + y : x * y; };
    const double ends[] = {join(a.low, b.low), join(a.low, b.high), join(a.high, b.low),
                           join(a.high, b.high)};
    const double most = dtype == kF32 ? kExactF32 : kExactF64;
    for (const double end : ends) {
      const bool is_exact = std::abs(end) <= most && end == std::trunc(end);
      if (!is_exact || (is_float(dtype) && dtype.bits < 32)) return all_numbers(dtype);
    }
    return {*std::ranges::min_element(ends), *std::ranges::max_element(ends),
            a.may_be_nan || b.may_be_nan};
  }

  // Integers saturate (floats after truncation); a NaN becomes 0.
  static NumberRange converted(const NumberRange& x, DType from, DType to) {
    if (is_bool(to)) return all_numbers(to);
    if (is_float(to)) {
      const double most = to == kF64 ? kExactF64 : to == kF32 ? kExactF32 : 0;
      const bool is_exact = !is_float(from) && lies_within(x, {-most, most});
      return is_exact || (to == kF64 && is_float(from)) ? x : all_numbers(to);
    }
    const NumberRange type = all_numbers(to);
    const auto saturated = [&](double end) {
      return std::clamp(std::trunc(end), type.low, type.high);
    };
    const NumberRange found{saturated(x.low), saturated(x.high)};
    return x.may_be_nan ? joined(found, {0, 0}) : found;
  }

  const ir::Program& program_;
  const ir::Function& function_;
  std::unordered_map<ValueId, NumberRange> known_;
};

}  // namespace

std::optional<IntegerRange> find_integer_range(const ir::Program& program,
                                               const ir::Function& function, ir::ValueId value) {
  const NumberRange found = Ranges(program, function).of(value);
  if (!lies_within(found, {-kExactF64, kExactF64})) return std::nullopt;
  return IntegerRange{static_cast<std::int64_t>(found.low), static_cast<std::int64_t>(found.high)};
}

}  // namespace cinch::analysis
