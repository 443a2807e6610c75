// Bodies of rank_sums.h.
#include "compiler/analysis/rank_sums.h"

#include <algorithm>
#include <bit>

#include "compiler/ir/types.h"

namespace cinch::analysis {
namespace {

constexpr std::int64_t kWordBits = 64;
// For wider ranges, sums over many ranks need more bits than the elements have.
constexpr std::int64_t kMostSpan = 65535;

std::int64_t span_of(const IntegerRange& range) {
  return std::max<std::int64_t>(range.greatest - range.least, 1);
}

bool is_sum_over_ranks(const ir::Function& function, const ir::Op& op) {
  const bool adds = op.kind == ir::OpKind::all_reduce || op.kind == ir::OpKind::reduce_scatter;
  return adds && function.combiners[op.attrs.combiner.index()].op == ScalarOp::add;
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
  if (!is_sum_over_ranks(function, op)) return std::nullopt;
  const ir::Type& type = function.values[op.operands[0].index()].type;
  const bool is_whole_word = type.dtype.bits == 32 || type.dtype.bits == 64;
  if (type.rank == 0 || !is_int(type.dtype) || !is_whole_word) return std::nullopt;
  const HostExprPool& exprs = program.info.exprs;
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
  HostExprPool exprs = program.info.exprs;
  const ir::Type& type = function.values[op.operands[0].index()].type;
  const HostExprId words = num_sum_words(exprs, *sum, num_packed_together(exprs, op, type));
  const auto found = exprs.eval_int(words, env);
  return found ? std::optional(kWordBits / 8 * *found) : std::nullopt;
}

}  // namespace cinch::analysis
