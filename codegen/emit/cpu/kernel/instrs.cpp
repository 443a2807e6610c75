// Bodies of instrs.h.
#include "codegen/emit/cpu/kernel/instrs.h"

#include <fmt/format.h>

#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;

CpuInstrs::CpuInstrs(CpuContext& cx)
    : CpuPrinter(cx),
      values_(cx),
      memory_(cx),
      reductions_(cx, [this](const Instr& instr) { emit(instr); }),
      draws_(cx) {}

void CpuInstrs::prepare(const Instr& instr) {
  if (instr.combiner != rt::kNoIndex) reductions_.need_combiner(instr.combiner);
  if (is_draw(instr.kind)) draws_.need_stream(instr);
}

void CpuInstrs::open_tile(const Instr& instr) {
  reductions_.open_tile(instr);
  draws_.open_tile(instr);
  memory_.open_tile(instr);
}

void CpuInstrs::close_tile(const Instr& instr) {
  reductions_.close_tile(instr);
  memory_.close_tile(instr);
}

void CpuInstrs::emit_status(const Instr& instr) {
  const ValueId pred = instr.operands[0];
  const bool is_lanes = cx().level == Level::Element;
  if (instr.kind == InstrKind::flag_nonfinite) {
    line(fmt::format("nonfinite |= live & nonfinite_bits({});", lanes(pred)));
  } else if (is_lanes) {
    line(fmt::format("failed_{} |= {};", instr.index, acting(pred)));
  } else {
    line(fmt::format("if ({}) report_failure(args, {}u);", uniform(pred), instr.index));
  }
}

void CpuInstrs::emit_local(const Instr& instr) {
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

void CpuInstrs::emit(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::constant:
    case InstrKind::param:
    case InstrKind::host_size:
    case InstrKind::group:
    case InstrKind::group_len:
    case InstrKind::column:
    case InstrKind::element:
      return values_.emit_leaf(instr);
    case InstrKind::scalar:
    case InstrKind::bitcast:
    case InstrKind::convert:
      return values_.emit_element_wise(instr);
    case InstrKind::call_extern:
      return values_.emit_call_extern(instr);
    case InstrKind::load_linear:
    case InstrKind::load_at:
    case InstrKind::store_linear:
    case InstrKind::store_at:
    case InstrKind::add_at:
    case InstrKind::max_at:
    case InstrKind::hist_add:
    case InstrKind::argsort_row:
      return memory_.emit(instr);
    case InstrKind::reduce:
      return reductions_.emit_reduce(instr);
    case InstrKind::running_sum:
      return reductions_.emit_running_sum(instr);
    case InstrKind::look_back:
      return;  // between the phases
    case InstrKind::local_store:
    case InstrKind::local_load:
    case InstrKind::local_last:
    case InstrKind::local_previous:
      return emit_local(instr);
    case InstrKind::local_scan:
      return reductions_.emit_local_scan(instr);
    case InstrKind::local_butterflies:
    case InstrKind::local_product:
      return reductions_.emit_local_transform(instr);
    case InstrKind::finish_reduce:
      return reductions_.emit_finish_reduce(instr);
    case InstrKind::finish_scan:
      return reductions_.emit_finish_scan(instr);
    case InstrKind::random:
    case InstrKind::random_bits:
    case InstrKind::normal:
    case InstrKind::random_index:
    case InstrKind::stochastic_round:
      return draws_.emit(instr);
    case InstrKind::flag_nonfinite:
    case InstrKind::fail_if:
      return emit_status(instr);
  }
  CINCH_BUG("unknown instruction");
}

}  // namespace cinch::codegen
