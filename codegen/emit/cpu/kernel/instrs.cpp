#include "codegen/emit/cpu/kernel/instrs.h"

#include <fmt/format.h>

#include "codegen/kir/instr_info.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrFamily;
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
  switch (kir::family_of(instr.kind)) {
    case InstrFamily::Given:
    case InstrFamily::Leaf:
      return values_.emit_leaf(instr);
    case InstrFamily::ElementWise:
      return values_.emit_element_wise(instr);
    case InstrFamily::Call:
      return values_.emit_call_extern(instr);
    case InstrFamily::Load:
    case InstrFamily::Store:
    case InstrFamily::Update:
    case InstrFamily::Sort:
      return memory_.emit(instr);
    case InstrFamily::Reduction:
    case InstrFamily::LocalWhole:
    case InstrFamily::Finish:
      return reductions_.emit(instr);
    case InstrFamily::LookBack:
      return;  // printed between the phases
    case InstrFamily::Local:
      return emit_local(instr);
    case InstrFamily::Draw:
      return draws_.emit(instr);
    case InstrFamily::Status:
      return emit_status(instr);
  }
  CINCH_BUG("an instruction of no family");
}

}  // namespace cinch::codegen
