// Bodies of checks.h.
#include "compiler/lower/parts/checks.h"

#include <algorithm>

namespace cinch::lower {

// Uses the bits of signed indices, so that a negative one is beyond every array.
ValueId Checks::as_index(ValueId value) {
  const DType dtype = emit_.dtype(value);
  if (is_signed_int(dtype)) {
    const bool is_wide = dtype.bits > 32;
    value = emit_.convert(value, is_wide ? kI64 : kI32);
    value = emit_.bitcast(value, is_wide ? kU64 : kU32);
  }
  return emit_.convert(value, kU32);
}

ValueId Checks::holds_or_inactive(Lowered holds, const Type& type) {
  if (!cx_.lanes.active) return holds.id;
  const std::uint8_t lanes = std::max(holds.lanes, cx_.lanes.active->lanes);
  const ValueId inactive = emit_.map(ScalarOp::bit_not, aligned(*cx_.lanes.active, type, lanes));
  return emit_.map(ScalarOp::bit_or, aligned(holds, type, lanes), inactive);
}

void Checks::all(ValueId mask, const std::string& text) {
  if (emit_.type(mask).rank > 0) {
    mask = emit_.reduce(ScalarOp::bit_and, mask);
  }
  emit_.check(mask, text);
}

void Checks::index(Lowered index, const Type& index_type, HostExprId size,
                   const std::string& text) {
  if (!cx_.lanes.active && !emit_.exprs().has_count(size)) {
    emit_.check_index(index.id, size, text);
    return;
  }
  const ValueId holds = emit_.map(ScalarOp::lt, index.id, host_scalar(size, kU32));
  all(holds_or_inactive({holds, index.lanes}, index_type), text);
}

void Checks::condition(Lowered condition, const std::string& text) {
  all(holds_or_inactive(condition, scalar_type(kBool)), text);
}

}  // namespace cinch::lower
