// Bodies of Checks (access.h).
#include "compiler/lower/parts/access.h"

#include <algorithm>

namespace cinch::lower {

// Uses the bits of signed indices, so that a negative one is beyond every array.
ValueId Checks::as_index(ValueId value) {
  const DType dtype = emit().dtype(value);
  if (is_signed_int(dtype)) {
    const bool is_wide = dtype.bits > 32;
    value = emit().convert(value, is_wide ? kI64 : kI32);
    value = emit().bitcast(value, is_wide ? kU64 : kU32);
  }
  return emit().convert(value, kU32);
}

ValueId Checks::holds_or_inactive(Lowered holds, const Type& type) {
  const std::optional<Lowered>& active = cx().lanes.active;
  if (!active) return holds.id;
  const std::uint8_t lanes = std::max(holds.lanes, active->lanes);
  const ValueId inactive = emit().map(ScalarOp::bit_not, aligned(*active, type, lanes));
  return emit().map(ScalarOp::bit_or, aligned(holds, type, lanes), inactive);
}

void Checks::all(ValueId mask, const std::string& text) {
  if (emit().type(mask).rank > 0) {
    mask = emit().reduce(ScalarOp::bit_and, mask);
  }
  emit().check(mask, text);
}

void Checks::index(Lowered index, const Type& index_type, HostExprId size,
                   const std::string& text) {
  if (!cx().lanes.active && !emit().exprs().has_count(size)) {
    emit().check_index(index.id, size, text);
    return;
  }
  const ValueId holds = emit().map(ScalarOp::lt, index.id, host_scalar(size, kU32));
  all(holds_or_inactive({holds, index.lanes}, index_type), text);
}

void Checks::condition(Lowered condition, const std::string& text) {
  all(holds_or_inactive(condition, scalar_type(kBool)), text);
}

}  // namespace cinch::lower
