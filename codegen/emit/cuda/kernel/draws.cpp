#include "codegen/emit/cuda/kernel/uniform.h"

#include <fmt/format.h>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/instr_info.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;

kir::ValueId CudaDraws::iteration(const Instr& instr) {
  return optional_operand(instr, iteration_operand(instr));
}

std::string CudaDraws::stream_name(const Instr& instr) const {
  const ValueId at = iteration(instr);
  return fmt::format("stream{}{}{}", instr.draw.site, instr.draw.shared ? "_shared" : "",
                     at ? "_" + name(at) : "");
}

std::string CudaDraws::permutation_name(const Instr& instr) const {
  return fmt::format("permutation_{}_{}", stream_name(instr), name(instr.operands[1]));
}

std::string CudaDraws::halves_name(const Instr& round) const {
  return "halves_" + name(round.results[0]);
}

void CudaDraws::prepare(const Instr& instr) {
  const ValueId at = iteration(instr);
  const std::string stream = stream_name(instr);
  if (streams_done_.insert(stream).second) {
    line(fmt::format("const lang::DrawStream {} = lang::draw_stream(args.draw, {}u{}, {});", stream,
                     instr.draw.site, at ? fmt::format(" + u32({})", name(at)) : "",
                     instr.draw.shared));
  }
  if (instr.kind != InstrKind::random_index) return;
  const std::string permutation = permutation_name(instr);
  if (streams_done_.insert(permutation).second) {
    line(fmt::format("const lang::IndexPermutation {} = lang::index_permutation({}, u64({}));",
                     permutation, stream, name(instr.operands[1])));
  }
}

void CudaDraws::emit_uniform(const Instr& instr) {
  const std::string stream = stream_name(instr);
  const std::string first = name(instr.operands[0]);
  switch (instr.kind) {
    case InstrKind::random_index:
      return define(instr,
                    fmt::format("lang::random_index({}, {})", permutation_name(instr), first));
    case InstrKind::stochastic_round:
      return define(instr, fmt::format("lang::stochastic_round({}, {}, {})", first, stream,
                                       name(instr.operands[1])));
    default:
      return define(
          instr, fmt::format("lang::{}({}, {})", kir::instr_info(instr.kind).name, stream, first));
  }
}

void CudaDraws::emit_round(const Instr& instr) {
  const std::string x = quad(instr.operands[0]), index = quad(instr.operands[1]);
  const std::string stream = stream_name(instr);
  const std::string halves = is_by_rows(instr)
                                 ? halves_name(instr) + "[turn]"
                                 : fmt::format("random_halves({}, {})", stream, index);
  define_quad(instr.results[0]);
  const std::string made = name(instr.results[0]);
  if (!kir::rounds_to_int(instr)) {
    return line(
        fmt::format("stochastic_round_four({}, {}, {}, {}, {});", stream, halves, x, index, made));
  }
  const std::string kind =
      fmt::format("<{}, {}, lang::RoundedRange::{}>", is_signed_int(instr.dtype) ? "i32" : "u32",
                  instr.dtype.bits, facts().rounded_range(instr));
  if (cx().rounds_again) {
    return line(fmt::format("fixed_int_four{}({}, {}, {}, is_rare);", kind, halves, x, made));
  }
  line(fmt::format("stochastic_int_four{}({}, {}, {}, {}, {});", kind, stream, halves, x, index,
                   made));
}

void CudaDraws::emit(const Instr& instr) {
  if (instr.kind == InstrKind::random_index) {
    return define(instr, fmt::format("lang::random_index({}, {})", permutation_name(instr),
                                     operand(instr.operands[0])));
  }
  if (instr.kind == InstrKind::stochastic_round) return emit_round(instr);
  const std::string index = quad(instr.operands[0]);
  define_quad(instr.results[0]);
  line(fmt::format("{}_four<{}>({}, {}, {});", kir::instr_info(instr.kind).name, is_by_rows(instr),
                   stream_name(instr), index, name(instr.results[0])));
}

// ---- by rows ----

bool CudaDraws::is_by_rows(const Instr& instr) const {
  return cx().is_whole && cx().level == Level::Element && instr.kind != InstrKind::random_index &&
         facts().find_run(instr.operands[index_operand(instr)]).has_value();
}

std::string CudaDraws::first_drawn(const Instr& draw) const {
  const auto run = facts().find_run(draw.operands[index_operand(draw)]);
  CINCH_CHECK(run, "a draw by rows has no run");
  std::string first = run->is_of_tensor ? "u32(group_first)" : "0u";
  for (const ValueId addend : run->addends) first += " + " + name(addend);
  return first;
}

void CudaDraws::emit_ahead(const kir::Section& section, int num_rows) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::stochastic_round || !is_by_rows(instr)) continue;
    line(fmt::format("u64 {}[{}];", halves_name(instr), num_rows));
    line(fmt::format("random_half_rows<{}u>({}, {} + tile_begin + first_row * kRowElems, {});",
                     num_rows, stream_name(instr), first_drawn(instr), halves_name(instr)));
  }
}

}  // namespace cinch::codegen
