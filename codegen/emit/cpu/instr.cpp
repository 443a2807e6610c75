// CpuKernelEmitter: operands, and the dispatch over instructions.
#include <fmt/format.h>

#include "codegen/emit/cpu/kernel.h"
#include "codegen/emit/extern_text.h"
#include "codegen/kir/builder.h"
#include "codegen/kir/instr_info.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::ComputeType;
using kir::InstrKind;

bool CpuKernelEmitter::is_element(ValueId value) const {
  const Level level = value_levels_[value.index()];
  return level == Level::Element || level == Level::Combiner;
}

// A scalar: constants stand as literals.
std::string CpuKernelEmitter::uniform(ValueId value) const {
  CINCH_CHECK(!is_element(value) || (definitions_[value.index()] &&
                                     definitions_[value.index()]->kind == InstrKind::constant),
              "an element value where a uniform one must stand: " + name(value));
  const Instr* definition = definitions_[value.index()];
  if (definition && definition->kind == InstrKind::constant) {
    return literal(type(value), definition->bits);
  }
  return name(value);
}

std::string CpuKernelEmitter::lanes(ValueId value) const {
  const Instr* definition = definitions_[value.index()];
  const bool is_constant = definition && definition->kind == InstrKind::constant;
  if (is_element(value) && !is_constant) return name(value);
  return fmt::format("wide<{}>({})", c_type(type(value)), uniform(value));
}

std::string CpuKernelEmitter::operand(ValueId value) const {
  return level_ == Level::Element || level_ == Level::Combiner ? lanes(value) : uniform(value);
}

std::string CpuKernelEmitter::acting(ValueId pred) const {
  const bool is_lanes = level_ == Level::Element || level_ == Level::Combiner;
  if (!pred) return is_lanes ? "live" : "true";
  return is_lanes ? fmt::format("Truth(live & {})", lanes(pred)) : uniform(pred);
}

void CpuKernelEmitter::define(ValueId value, const std::string& text) {
  const bool is_lanes = level_ == Level::Element || level_ == Level::Combiner;
  const std::string held =
      fmt::format(fmt::runtime(is_lanes ? "Lanes<{}>" : "{}"), c_type(type(value)));
  line(fmt::format("const {} {} = {};", held, name(value), text));
}

void CpuKernelEmitter::assign(ValueId value, const std::string& text) {
  line(fmt::format("{} = {};", name(value), text));
}

void CpuKernelEmitter::emit_element_wise(const Instr& instr) {
  if (emit_bounded(instr) || emit_plain_bits(instr) || emit_steps(instr)) return;
  define(instr.results[0], element_wise(
                               instr, [&](ValueId value) { return type(value); },
                               [&](ValueId value) { return operand(value); }));
}

// A C++ function knows no lanes: it is called for one after the other.
void CpuKernelEmitter::emit_call_extern(const Instr& instr) {
  const bool is_lanes = level_ == Level::Element || level_ == Level::Combiner;
  const ValueId result = instr.results[0];
  std::vector<std::string> operands;
  operands.reserve(instr.operands.size());
  for (const ValueId value : instr.operands) {
    operands.push_back(is_lanes && (is_element(value) && !is_constant(value))
                           ? fmt::format("lane_of<{}>({}, l)", c_type(type(value)), name(value))
                           : uniform(value));
  }
  const std::string call = extern_call(program_.info, instr.index, operands);
  if (!is_lanes) return define(result, call);
  const char* element = c_type(type(result));
  line(fmt::format("Lanes<{}> {} = wide<{}>({}(0));", element, name(result), element, element));
  line(fmt::format("for (int l = 0; l < W; ++l) set_lane<{}>({}, l, {});", element, name(result),
                   call));
}

void CpuKernelEmitter::emit_leaf(const Instr& instr) {
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
                                kernel_.group_kind == kir::GroupKind::Tile ? "kTile" : "len"));
    default:
      CINCH_BUG("not a leaf");
  }
}

void CpuKernelEmitter::emit_status(const Instr& instr) {
  const ValueId pred = instr.operands[0];
  const bool is_lanes = level_ == Level::Element;
  if (instr.kind == InstrKind::flag_nonfinite) {
    line(fmt::format("nonfinite |= live & nonfinite_bits({});", lanes(pred)));
  } else if (is_lanes) {
    line(fmt::format("failed_{} |= {};", instr.index, acting(pred)));
  } else {
    line(fmt::format("if ({}) report_failure(args, {}u);", uniform(pred), instr.index));
  }
}

std::string CpuKernelEmitter::local(std::uint32_t index) const {
  const auto phases = local_phases_.find(index);
  const bool is_kept = phases != local_phases_.end() && phases->second.size() > 1;
  return fmt::format("local_{}{}", index, is_kept ? "[slot]" : "");
}

void CpuKernelEmitter::emit_local(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::local_store:
      return line(fmt::format("{}.set(j, {});", local(instr.index), lanes(instr.operands[0])));
    case InstrKind::local_load:
      return define(instr.results[0], fmt::format("{}.lanes(j)", local(instr.index)));
    case InstrKind::local_last:
      return define(instr.results[0], fmt::format("{}.last(len)", local(instr.index)));
    case InstrKind::local_previous:
      return define(instr.results[0], fmt::format("{}.previous(j, {})", local(instr.index),
                                                  lanes(instr.operands[0])));
    default:
      CINCH_BUG("not a local array's instruction");
  }
}

void CpuKernelEmitter::emit_instr(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::constant:
    case InstrKind::param:
    case InstrKind::host_size:
    case InstrKind::group:
    case InstrKind::group_len:
    case InstrKind::column:
    case InstrKind::element:
      return emit_leaf(instr);
    case InstrKind::scalar:
    case InstrKind::bitcast:
      return emit_element_wise(instr);
    case InstrKind::convert:
      if (emit_known_convert(instr)) return;
      return emit_element_wise(instr);
    case InstrKind::call_extern:
      return emit_call_extern(instr);
    case InstrKind::load_linear:
    case InstrKind::load_at:
    case InstrKind::store_linear:
    case InstrKind::store_at:
    case InstrKind::add_at:
    case InstrKind::max_at:
    case InstrKind::hist_add:
    case InstrKind::argsort_row:
      return emit_memory(instr);
    case InstrKind::reduce:
      return emit_reduce(instr);
    case InstrKind::running_sum:
      return emit_running_sum(instr);
    case InstrKind::look_back:
      return;  // between the phases
    case InstrKind::local_store:
    case InstrKind::local_load:
    case InstrKind::local_last:
    case InstrKind::local_previous:
      return emit_local(instr);
    case InstrKind::local_scan:
      return emit_local_scan(instr);
    case InstrKind::local_butterflies:
    case InstrKind::local_product:
      return emit_local_transform(instr);
    case InstrKind::finish_reduce:
      return emit_finish_reduce(instr);
    case InstrKind::finish_scan:
      return emit_finish_scan(instr);
    case InstrKind::random:
    case InstrKind::random_bits:
    case InstrKind::normal:
    case InstrKind::random_index:
    case InstrKind::stochastic_round:
      return emit_draw(instr);
    case InstrKind::flag_nonfinite:
    case InstrKind::fail_if:
      return emit_status(instr);
  }
  CINCH_BUG("unknown instruction");
}

}  // namespace cinch::codegen
