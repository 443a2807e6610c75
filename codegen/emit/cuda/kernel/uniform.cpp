#include <fmt/format.h>

#include "codegen/emit/cuda/kernel/uniform.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
using kir::InstrKind;

CudaUniform::CudaUniform(CudaContext& cx)
    : CudaPrinter(cx), items_(cx, [this](const Instr& instr) { emit(instr); }), draws_(cx) {}

// The condition under which one thread acts for the launch (unless the launch only folds partials)
// or for the group's team.
std::string CudaUniform::only_once(const std::string& condition) const {
  if (cx().level != Level::Kernel) return "if (is_active && team.rank == 0u" + condition + ") ";
  const char* const unless_fold =
      uses(kernel(), InstrKind::finish_reduce) ? " && !folding.folds" : "";
  return fmt::format("if (place.block == 0u && threadIdx.x == 0u{}{}) ", unless_fold, condition);
}

void CudaUniform::emit_call_extern(const Instr& instr) {
  std::vector<std::string> operands;
  operands.reserve(instr.operands.size());
  for (const ValueId value : instr.operands) {
    operands.push_back(cx().level == Level::Element ? operand(value) : name(value));
  }
  define(instr, extern_call(program().info, instr.index, operands));
}

void CudaUniform::emit_leaf(const Instr& instr) {
  const ComputeType made = type(instr.results.at(0));
  const auto from_word = [&](const std::string& word) {
    switch (made) {
      case ComputeType::Bool:
        return word + " != 0u";
      case ComputeType::F32:
        return fmt::format("lang::f32_of_bits(u32({}))", word);
      case ComputeType::F64:
        return fmt::format("lang::f64_of_bits({})", word);
      default:
        return fmt::format("{}({})", c_type(made), word);
    }
  };
  switch (instr.kind) {
    case InstrKind::constant:
      return define(instr, literal(made, instr.bits));
    case InstrKind::param:
      return define(instr, from_word(fmt::format("args.params[{}]", instr.index)));
    case InstrKind::host_size:
      return define(instr, from_word(cx().places.size_entry(instr.index)));
    case InstrKind::group:
      return define(instr, "i64(group)");
    case InstrKind::group_len:
      return define(instr, "i64(len)");
    default:
      CINCH_BUG("not an instruction of a uniform section");
  }
}

void CudaUniform::emit_memory(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  if (instr.kind == InstrKind::argsort_row) {
    return line("argsort_row<{}>(team, {}, {}, {}, {}, is_active ? {} : i64(0), {}, digits);",
                stored, buffer, buffer_name(instr.buffers[1]), buffer_name(instr.buffers[2]),
                name(instr.operands[0]), name(instr.operands[1]), instr.descending);
  }
  const std::string index = name(instr.operands[0]);
  if (instr.kind == InstrKind::store_at) {
    return line(only_once(pred_text(instr, 2)) + fmt::format("store_one<{}>({}, i64({}), {});",
                                                             stored, buffer, index,
                                                             name(instr.operands[1])));
  }
  const std::string load = fmt::format("load_one<{}>({}, i64({}))", stored, buffer, index);
  const std::string guard =
      (cx().level == Level::Group ? std::string("is_active") : std::string("true")) +
      pred_text(instr, 1);
  define(instr, guard == "true"
                    ? load
                    : fmt::format("{} ? {} : {}(0)", guard, load, c_type(type(instr.results[0]))));
}

void CudaUniform::emit_look_back(const Instr& instr) {
  define(instr,
         "{}(look_back<kBlockWarps, {}>(reinterpret_cast<u64*>({}), ticket, is_active ? "
         "u64({}) : 0u, slots))",
         c_type(type(instr.results[0])), shape().team_warps == 1, buffer_name(instr.buffers[0]),
         name(instr.operands[0]));
}

void CudaUniform::emit_finish_reduce(const Instr& instr) {
  const CudaItem& made = items_.item(instr);
  const std::size_t count = count_of(kernel(), InstrKind::finish_reduce);
  const std::string folding =
      count == 1 ? "folding" : fmt::format("folding_at(folding, {}u, {}u)", num_folds_++, count);
  const std::string result = "reduced_" + name(instr.results[0]);
  std::vector<std::string> parts;
  std::string stores;
  for (std::size_t i = 0; i < instr.buffers.size(); ++i) {
    const std::string stored = storage(instr.buffers[i]), buffer = buffer_name(instr.buffers[i]);
    const std::string load = fmt::format("load_one<{}>({}, i64(i))", stored, buffer);
    parts.push_back(i == made.types.size() ? "bool(" + load + ")" : load);
    stores += fmt::format(" store_one<{}>({}, i64(i), {});", stored, buffer, made.part("x", i));
  }
  const std::string held = share(made.type, result, "[kBlockWarps]");
  if (!made.is_tuple) {
    return line("{} {} = reduce_partials<{}>(team, {}, at_most(~0ull >> 1, {}), {}, {}, {}, {});",
                made.type, name(instr.results[0]), storage(instr.buffers[0]), folding,
                name(instr.operands[0]), buffer_name(instr.buffers[0]), held, made.empty,
                made.join);
  }
  line(
      "{} {} = reduce_stored(team, {}, at_most(~0ull >> 1, {}), {}, {}, "
      "[&](u64 i) {{ return {}; }}, [&](u64 i, const {}& x) {{{} }}, {});",
      made.type, result, folding, name(instr.operands[0]), held, made.empty, made.of(parts),
      made.type, stores, made.join);
  for (std::size_t i = 0; i < instr.results.size(); ++i) {
    line("{} {} = {};", c_type(type(instr.results[i])), name(instr.results[i]),
         made.part(result, i));
  }
}

void CudaUniform::emit_finish_scan(const Instr& instr) {
  const CudaItem& made = items_.item(instr);
  const std::string ends = "ends_" + buffer_name(instr.buffers[0]);
  std::vector<std::string> parts;
  std::string stores;
  for (std::size_t i = 0; i < instr.buffers.size(); ++i) {
    const std::string stored = storage(instr.buffers[i]), buffer = buffer_name(instr.buffers[i]);
    parts.push_back(fmt::format("load_one<{}>({}, i64(begin + i))", stored, buffer));
    stores +=
        fmt::format(" store_one<{}>({}, i64(begin + i), {});", stored, buffer, made.part("x", i));
  }
  const std::string len = name(instr.operands[1]);
  line("{}* const {} = {};", made.type, ends, share(made.type, ends, "[kTileElems]"));
  line("for (i64 row = 0; row < {}; ++row) {{", name(instr.operands[0]));
  line("const u64 begin = u64(row) * u64({});", len);
  line("const auto load = [&](u64 i) -> {} {{ return {}; }};", made.type, made.of(parts));
  line("const auto store = [&](u64 i, const {}& x) {{{} }};", made.type, stores);
  line("scan_stored_row(team, at_most(~0ull >> 1, {}), {}, {}, load, store, {});", len, ends,
       made.empty, made.join);
  line("}");
}

void CudaUniform::emit_local_transform(const Instr& instr) {
  const std::int64_t len = program().info.exprs->const_value(kernel().group_len).as_int();
  if (instr.kind == InstrKind::local_butterflies) {
    return line("if (is_active) butterflies_of_row<{}>(local{});", len, instr.index);
  }
  if (instr.kind == InstrKind::local_largest) {
    return line("if (is_active) mark_largest_of_row<{}>(local{}, {});", len, instr.index,
                name(instr.operands[0]));
  }
  line("if (is_active) multiply_row<{}, {}>(local{}, {}, local{});", len, storage(instr.buffers[0]),
       instr.index, buffer_name(instr.buffers[0]), instr.index + 1);
}

void CudaUniform::emit_local_scan(const Instr& instr) {
  const CudaItem& made = items_.item(instr);
  std::vector<std::string> parts;
  std::string stores;
  for (std::size_t i = 0; i < made.types.size(); ++i) {
    parts.push_back(fmt::format("local{}[i]", instr.index + i));
    stores += fmt::format(" local{}[i] = {};", instr.index + i, made.part("x", i));
  }
  line(
      "scan_tile(team, len, {0}, [&](u32 i) -> {1} {{ return {2}; }}, "
      "[&](u32 i, const {1}& x) {{{3} }}, {4});",
      made.empty, made.type, made.of(parts), stores, made.join);
}

void CudaUniform::emit(const Instr& instr) {
  if (is_element_wise(instr.kind)) {
    return define(instr, element_wise(
                             instr, [&](ValueId value) { return type(value); },
                             [&](ValueId value) { return name(value); }));
  }
  if (instr.kind == InstrKind::call_extern) return emit_call_extern(instr);
  if (is_draw(instr.kind)) return draws_.emit_uniform(instr);
  switch (instr.kind) {
    case InstrKind::load_at:
    case InstrKind::store_at:
    case InstrKind::argsort_row:
      return emit_memory(instr);
    case InstrKind::look_back:
      return emit_look_back(instr);
    case InstrKind::local_scan:
      return emit_local_scan(instr);
    case InstrKind::local_butterflies:
    case InstrKind::local_largest:
    case InstrKind::local_product:
      return emit_local_transform(instr);
    case InstrKind::local_last:
      return define(instr, "len > 0u ? local{0}[len - 1u] : {1}(0)", instr.index,
                    c_type(type(instr.results[0])));
    case InstrKind::finish_reduce:
      return emit_finish_reduce(instr);
    case InstrKind::finish_scan:
      return emit_finish_scan(instr);
    case InstrKind::fail_if:
      return line(only_once(" && " + name(instr.operands[0])) +
                  fmt::format("fail_call(status, {}u);", instr.index));
    default:
      return emit_leaf(instr);
  }
}

void CudaUniform::prepare(const Instr& instr) {
  if (instr.combiner != rt::kNoIndex) items_.item(instr);
  if (is_draw(instr.kind)) draws_.prepare(instr);
}

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
    line("const lang::DrawStream {} = lang::draw_stream(args.draw, {}u{}, {});", stream,
         instr.draw.site, at ? fmt::format(" + u32({})", name(at)) : "", instr.draw.shared);
  }
  if (instr.kind != InstrKind::random_index) return;
  const std::string permutation = permutation_name(instr);
  if (streams_done_.insert(permutation).second) {
    line("const lang::IndexPermutation {} = lang::index_permutation({}, u64({}));", permutation,
         stream, name(instr.operands[1]));
  }
}

void CudaDraws::emit_uniform(const Instr& instr) {
  const std::string stream = stream_name(instr);
  const std::string first = name(instr.operands[0]);
  switch (instr.kind) {
    case InstrKind::random_index:
      return define(instr, "lang::random_index({}, {})", permutation_name(instr), first);
    case InstrKind::stochastic_round:
      return define(instr, "lang::stochastic_round({}, {}, {})", first, stream,
                    name(instr.operands[1]));
    default:
      return define(instr, "lang::{}({}, {})", kir::instr_info(instr.kind).name, stream, first);
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
    return line("stochastic_round_four({}, {}, {}, {}, {});", stream, halves, x, index, made);
  }
  const std::string kind =
      fmt::format("<{}, {}, lang::RoundedRange::{}>", is_signed_int(instr.dtype) ? "i32" : "u32",
                  instr.dtype.bits, facts().rounded_range(instr));
  if (cx().rounds_again) {
    return line("fixed_int_four{}({}, {}, {}, is_rare);", kind, halves, x, made);
  }
  line("stochastic_int_four{}({}, {}, {}, {}, {});", kind, stream, halves, x, index, made);
}

void CudaDraws::emit(const Instr& instr) {
  if (instr.kind == InstrKind::random_index) {
    return define(instr, "lang::random_index({}, {})", permutation_name(instr),
                  operand(instr.operands[0]));
  }
  if (instr.kind == InstrKind::stochastic_round) return emit_round(instr);
  const std::string index = quad(instr.operands[0]);
  define_quad(instr.results[0]);
  line("{}_four<{}>({}, {}, {});", kir::instr_info(instr.kind).name, is_by_rows(instr),
       stream_name(instr), index, name(instr.results[0]));
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
    line("u64 {}[{}];", halves_name(instr), num_rows);
    line("random_half_rows<{}u>({}, {} + tile_begin + first_row * kRowElems, {});", num_rows,
         stream_name(instr), first_drawn(instr), halves_name(instr));
  }
}

}  // namespace cinch::codegen
