#include "codegen/emit/cpu/kernel/values.h"

#include <fmt/format.h>

#include "codegen/emit/c_family.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::ComputeType;
using kir::InstrKind;

void CpuValues::emit_element_wise(const Instr& instr) {
  if (emit_bounded(instr) || emit_plain_bits(instr) || emit_known_convert(instr) ||
      emit_narrow_comparison(instr) || emit_high_product(instr) || emit_steps(instr)) {
    return;
  }
  define(instr.results[0], element_wise(
                               instr, [&](ValueId value) { return type(value); },
                               [&](ValueId value) { return operand(value); }));
}

// A C++ function takes scalars, so the lanes call it one after the other.
void CpuValues::emit_call_extern(const Instr& instr) {
  const ValueId result = instr.results[0];
  std::vector<std::string> operands;
  operands.reserve(instr.operands.size());
  for (const ValueId value : instr.operands) {
    operands.push_back(is_lanes() && (facts().is_element(value) && !facts().is_constant(value))
                           ? fmt::format("lane_of<{}>({}, l)", c_type(type(value)), name(value))
                           : uniform(value));
  }
  const std::string call = extern_call(facts().program().info, instr.index, operands);
  if (!is_lanes()) return define(result, call);
  const char* element = c_type(type(result));
  line(fmt::format("Lanes<{}> {} = wide<{}>({}(0));", element, name(result), element, element));
  line(fmt::format("for (int l = 0; l < W; ++l) set_lane<{}>({}, l, {});", element, name(result),
                   call));
}

void CpuValues::emit_leaf(const Instr& instr) {
  const ValueId result = instr.results[0];
  const ComputeType t = type(result);
  const auto word = [&](const char* table) -> std::string {
    const std::string text = fmt::format("args->{}[{}]", table, instr.index);
    if (t == ComputeType::F32) return fmt::format("f32_of_word({})", text);
    if (t == ComputeType::F64) return fmt::format("f64_of_word({})", text);
    return fmt::format("{}({})", c_type(t), text);
  };
  switch (instr.kind) {
    case InstrKind::constant:
      return;
    case InstrKind::param:
      return define(result, word("params"));
    case InstrKind::host_size:
      return define(result, word("sizes"));
    case InstrKind::group:
      return define(result, "i64(group)");
    case InstrKind::group_len:
      return define(result, "i64(len)");
    case InstrKind::column:
      return define(result, "lane_numbers() + wide(j)");
    case InstrKind::element:
      return define(result,
                    fmt::format("lane_numbers() + wide(u32(group * {}) + j)",
                                kernel().group_kind == kir::GroupKind::Tile ? "kTile" : "len"));
    default:
      CINCH_BUG("not a leaf");
  }
}

}  // namespace cinch::codegen
