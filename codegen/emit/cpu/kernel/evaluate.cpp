#include "codegen/emit/cpu/kernel/evaluate.h"

#include <vector>

#include "codegen/kir/compute_type.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::codegen {

using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

std::optional<std::uint64_t> CpuEvaluator::of(ValueId value) {
  if (const auto at = known_.find(value.index()); at != known_.end()) return at->second;
  const Instr* made = facts_.definition(value);
  const auto found = made == nullptr ? std::nullopt : find(*made);
  known_.emplace(value.index(), found);
  return found;
}

std::optional<std::uint64_t> CpuEvaluator::find(const Instr& made) {
  const DType own = kir::dtype_of(facts_.type(made.results[0]));
  if (made.kind == InstrKind::constant) return encode_bits(own, made.bits);
  if (made.kind != InstrKind::scalar && made.kind != InstrKind::convert) return std::nullopt;
  std::vector<std::uint64_t> operands;
  for (const ValueId operand : made.operands) {
    const auto found = of(operand);
    if (!found) return std::nullopt;
    operands.push_back(*found);
  }
  if (made.kind == InstrKind::scalar) {
    // Integers that are no truth values wrap to their declared width.
    const kir::ComputeType computed = facts_.type(made.operands.back());
    const bool has_width = kir::is_integer(computed) && own != kBool;
    return evaluate_scalar(made.scalar_op, has_width ? made.dtype : kir::dtype_of(computed),
                           operands);
  }
  const DType from = made.from_dtype, to = made.dtype;
  // Narrow floats are computed with as f32.
  if (is_narrow_float(from) || is_narrow_float(to)) return std::nullopt;
  return convert_element(from, to, operands[0]);
}

}  // namespace cinch::codegen
