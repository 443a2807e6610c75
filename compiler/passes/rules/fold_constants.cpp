// Element-wise operations on constants, by the language's own functions.
//
//   before:  %1: f32 = map.sqrt %0        after:  %1: f32 = const_scalar {value=2}
//            (%0 is 4)
#include <vector>

#include "compiler/passes/rules/rules.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/params.h"

namespace cinch::passes {
namespace {

std::optional<ir::ValueId> fold_map(const Matcher& m) {
  if (m.op().kind != ir::OpKind::map) return std::nullopt;
  std::vector<std::uint64_t> elements;
  for (ir::ValueId operand : m.op().operands) {
    const auto element = m.constant(operand);
    if (!element) return std::nullopt;
    elements.push_back(*element);
  }
  const DType dtype = m.type(m.op().operands.back()).dtype;
  return m.constant_result(evaluate_scalar(m.op().attrs.scalar_op, dtype, elements));
}

std::optional<ir::ValueId> fold_convert(const Matcher& m) {
  if (m.op().kind != ir::OpKind::convert && m.op().kind != ir::OpKind::bitcast) return std::nullopt;
  const auto element = m.constant(m.operand(0));
  if (!element) return std::nullopt;
  const DType from = m.type(m.operand(0)).dtype, to = m.result_type().dtype;
  return m.constant_result(m.op().kind == ir::OpKind::convert
                               ? convert_element(from, to, *element)
                               : bitcast_element(from, to, *element));
}

std::optional<ir::ValueId> fold_host_size(const Matcher& m) {
  const HostExprPool& exprs = m.builder().exprs();
  if (m.op().kind != ir::OpKind::host_size || !exprs.is_const(m.op().attrs.size)) {
    return std::nullopt;
  }
  const HostValue value = exprs.const_value(m.op().attrs.size);
  const DType from = dtype_of(value.type);
  return m.constant_result(convert_element(from, m.result_type().dtype, value.bits));
}

constexpr Rule kFoldConstants[] = {fold_map, fold_convert, fold_host_size};

}  // namespace

std::span<const Rule> constant_rules() {
  return kFoldConstants;
}

}  // namespace cinch::passes
