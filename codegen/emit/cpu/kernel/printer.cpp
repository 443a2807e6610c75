// The text so far, and instructions by their kind; random draws.
#include <fmt/format.h>

#include "codegen/emit/cpu/kernel/instrs.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
std::string CpuPrinter::uniform(ValueId value) const {
  if (facts().is_constant(value)) return literal(type(value), facts().definition(value)->bits);
  CINCH_CHECK(!facts().is_element(value),
              "an element value where a uniform one must stand: " + name(value));
  return name(value);
}

std::string CpuPrinter::lanes(ValueId value) const {
  const bool is_of_rows = cx_.level == Level::Rows && cx_.facts.level(value) == Level::Group;
  if ((is_of_rows || facts().is_element(value)) && !facts().is_constant(value)) return name(value);
  return fmt::format("wide<{}>({})", c_type(type(value)), uniform(value));
}

std::string CpuPrinter::operand(ValueId value) const {
  return is_lanes() ? lanes(value) : uniform(value);
}

std::string CpuPrinter::acting(ValueId pred) const {
  if (!pred) return is_lanes() ? "live" : "true";
  return is_lanes() ? fmt::format("Truth(live & {})", lanes(pred)) : uniform(pred);
}

void CpuPrinter::define(ValueId value, const std::string& text) {
  const std::string held =
      fmt::format(fmt::runtime(is_lanes() ? "Lanes<{}>" : "{}"), c_type(type(value)));
  line("const {} {} = {};", held, name(value), text);
}

void CpuPrinter::assign(ValueId value, const std::string& text) {
  line("{} = {};", name(value), text);
}

std::string CpuPrinter::local(std::uint32_t index) const {
  return fmt::format("local_{}{}", index, cx().phases.is_kept(index) ? "[slot]" : "");
}

std::string CpuPrinter::stage_name(const Instr& instr) const {
  if (!instr.results.empty()) return "stage_" + name(instr.results[0]);
  return fmt::format("stage_{}_{}", cx().section, cx().instr);
}

std::string CpuPrinter::base_text(ValueId base, const char* place) const {
  if (!base) return fmt::format("i64({})", place);
  return fmt::format("i64({}) + {}", uniform(base), place);
}

std::string CpuPrinter::count_text(ValueId limit, const char* place, const char* count) const {
  if (!limit) return count;
  return fmt::format("places_below(i64({}), i64({}), {})", uniform(limit), place, count);
}

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
  values_.need_divider(instr);
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
    line("nonfinite |= live & nonfinite_bits({});", lanes(pred));
  } else if (is_lanes) {
    line("failed_{} |= {};", instr.index, acting(pred));
  } else {
    line("if ({}) report_failure(args, {}u);", uniform(pred), instr.index);
  }
}

void CpuInstrs::emit_local(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::local_store:
      return line("{}.set(j, {});", local(instr.index), lanes(instr.operands[0]));
    case InstrKind::local_load:
      return define(instr.results[0], "{}.lanes(j)", local(instr.index));
    case InstrKind::local_last:
      return define(instr.results[0], "{}.last(len)", local(instr.index));
    case InstrKind::local_previous:
      return define(instr.results[0], "{}.previous(j, {})", local(instr.index),
                    lanes(instr.operands[0]));
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

std::string CpuDraws::stream_name(const Instr& instr) const {
  const ValueId iteration = optional_operand(instr, iteration_operand(instr));
  return fmt::format("stream_{}{}{}", instr.draw.site, instr.draw.shared ? "_shared" : "",
                     iteration ? "_" + name(iteration) : "");
}

// The draws of one site are a stream. A task computes its key once.
void CpuDraws::need_stream(const Instr& instr) {
  const std::string stream = stream_name(instr);
  const ValueId iteration = optional_operand(instr, iteration_operand(instr));
  if (streams_done_.insert(stream).second) {
    const std::string site = iteration
                                 ? fmt::format("{}u + u32({})", instr.draw.site, uniform(iteration))
                                 : fmt::format("{}u", instr.draw.site);
    line("const lang::DrawStream {} = lang::draw_stream(args->draw, {}, {});", stream, site,
         instr.draw.shared);
  }
  if (instr.kind != InstrKind::random_index) return;
  line("const lang::IndexPermutation permutation_{} = lang::index_permutation({}, u64({}));",
       name(instr.results[0]), stream, uniform(instr.operands[1]));
}

// The value is first + tile + i + lane with a uniform `first`; returns `first` as text.
std::string CpuDraws::first_of_run(ValueId value) const {
  const auto run = facts().find_run(value);
  CINCH_CHECK(run, "a staged draw has no run");
  const char* group = kernel().group_kind == kir::GroupKind::Tile ? "kTile" : "len";
  std::string first = run->is_of_tensor ? fmt::format("u32(group * {})", group) : "0u";
  for (const ValueId addend : run->addends)
    first = fmt::format("({} + {})", first, uniform(addend));
  return first;
}

void CpuDraws::open_tile(const Instr& instr) {
  if (!facts().is_staged_draw(instr)) return;
  fill_stage(instr, first_of_run(instr.operands[index_operand(instr)]) + " + tile", "tile_len");
}

void CpuDraws::open_rows(const Instr& instr) {
  std::string begin = "u32(first * len)";
  for (const ValueId addend : facts().find_run(instr.operands[index_operand(instr)])->addends)
    begin += " + " + uniform(addend);
  fill_stage(instr, begin, "rows * len");
}

void CpuDraws::emit_of_rows(const Instr& instr) {
  const ValueId result = instr.results[0];
  const std::string stream = stream_name(instr);
  const std::string index = operand(instr.operands[index_operand(instr)]);
  const std::string staged =
      fmt::format("staged_of_rows({0}.at{1}, row, len, j)", stage_name(instr),
                  instr.kind == InstrKind::normal ? " + " + stage_name(instr) + ".skipped" : "");
  if (instr.kind == InstrKind::random) return define(result, "lang::uniform_of_bits({})", staged);
  if (instr.kind != InstrKind::stochastic_round) return define(result, staged);
  const std::string x = operand(instr.operands[0]);
  const std::string half = fmt::format("lang::convert<u32>({})", staged);
  if (!kir::rounds_to_int(instr)) {
    return define(result, "lang::stochastic_round_with({}, {}, {}, {})", x, half, stream, index);
  }
  define(result,
         "lang::convert<{}>(lang::stochastic_int<{}, {}, lang::RoundedRange::{}>({}, {}, {}, {}))",
         c_type(type(result)), is_signed_int(instr.dtype) ? "i32" : "u32", instr.dtype.bits,
         facts().rounded_range(instr), x, half, stream, index);
}

void CpuDraws::fill_stage(const Instr& instr, const std::string& first, const std::string& count) {
  const char* kind = instr.kind == InstrKind::stochastic_round ? "Half"
                     : instr.kind == InstrKind::normal         ? "Normal"
                     : instr.kind == InstrKind::random_index   ? "Index"
                                                               : "Word";
  const char* fill = instr.kind == InstrKind::stochastic_round ? "halves"
                     : instr.kind == InstrKind::normal         ? "normals"
                                                               : "words";
  const std::string stage = stage_name(instr);
  line("{}Stage {};", kind, stage);
  if (instr.kind == InstrKind::random_index) {
    return line("stage_indices({}, permutation_{}, {}, {});", stage, name(instr.results[0]), first,
                count);
  }
  line("stage_{}({}, {}, {}, {});", fill, stage, stream_name(instr), first, count);
}

void CpuDraws::emit_staged_int(const Instr& round) {
  const ValueId result = round.results[0];
  const std::string kind =
      fmt::format("<{}, {}, lang::RoundedRange::{}>", is_signed_int(round.dtype) ? "i32" : "u32",
                  round.dtype.bits, facts().rounded_range(round));
  const std::string stage = stage_name(round), x = operand(round.operands[0]);
  const std::string first = first_of_run(round.operands[index_operand(round)]);
  const std::string exact = fmt::format("staged_int{}({}, i, {}, {}, {} + tile)", kind, stage, x,
                                        stream_name(round), first);
  const std::string but = fmt::format("staged_int_but{}(rare, {}, i, {})", kind, stage, x);
  const std::string result_type = c_type(type(result));
  if (!facts().rounds_again(kernel().sections[cx().section].instrs)) {
    return define(result, "lang::convert<{}>({})", result_type, exact);
  }
  line("Lanes<{}> {};", result_type, name(result));
  line("if constexpr (whole.value) {} = lang::convert<{}>({});", name(result), result_type, but);
  line("else {} = lang::convert<{}>({});", name(result), result_type, exact);
}

void CpuDraws::emit(const Instr& instr) {
  if (cx().level == Level::Kernel) need_stream(instr);
  if (cx().level == Level::Element && facts().is_staged_int(instr)) return emit_staged_int(instr);
  const ValueId result = instr.results[0];
  const std::string stream = stream_name(instr), stage = stage_name(instr);
  const std::string index = operand(instr.operands[index_operand(instr)]);
  const bool is_staged = cx().level == Level::Element && facts().is_staged_draw(instr);
  if (instr.kind == InstrKind::random_index) {
    return define(result, is_staged ? fmt::format("staged_indices({}, i)", stage)
                                    : fmt::format("lang::random_index(permutation_{}, {})",
                                                  name(result), index));
  }
  switch (instr.kind) {
    case InstrKind::random:
      return define(result, is_staged ? fmt::format("staged_uniforms({}, i)", stage)
                                      : fmt::format("lang::random({}, {})", stream, index));
    case InstrKind::random_bits:
      return define(result, is_staged ? fmt::format("staged_words({}, i)", stage)
                                      : fmt::format("lang::random_bits({}, {})", stream, index));
    case InstrKind::normal:
      return define(result, is_staged ? fmt::format("staged_normals({}, i)", stage)
                                      : fmt::format("lang::normal({}, {})", stream, index));
    case InstrKind::stochastic_round: {
      const std::string x = operand(instr.operands[0]);
      const std::string rounded =
          is_staged ? fmt::format("staged_round({}, i, {}, {}, {} + tile)", stage, x, stream,
                                  first_of_run(instr.operands[1]))
                    : fmt::format("lang::stochastic_round({}, {}, {})", x, stream, index);
      return define(result, kir::rounds_to_int(instr) ? as_integer(instr, rounded) : rounded);
    }
    default:
      CINCH_BUG("not a draw");
  }
}

}  // namespace cinch::codegen
