#include <fmt/format.h>

#include "codegen/emit/cuda/kernel/elements.h"

namespace cinch::codegen {
using kir::InstrKind;

namespace {
std::string result_name(const std::string& value) {
  return "results_" + value;
}
}  // namespace

CudaElements::CudaElements(CudaContext& cx, CudaUniform& uniform)
    : CudaPrinter(cx),
      items_(uniform.items()),
      instrs_(cx, uniform),
      rows_(cx, instrs_, uniform.draws()) {}

void CudaElements::open_reductions(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::running_sum) {
      const std::string carry = carry_name(name(instr.results[0]));
      line("{0} {1} = {0}(0);", c_type(type(instr.results[0])), carry);
    }
    if (instr.kind != InstrKind::reduce) continue;
    const CudaItem& made = items_.item(instr);
    const std::string results = result_name(name(instr.results[0]));
    line(made.is_unordered && shape().result_levels > 0
             ? fmt::format("JoinedResults<{}> {};", made.type, results)
             : fmt::format("TileResults<{}, {}> {};", made.type, shape().result_levels, results));
    line("{}.clear({});", results, made.empty);
    if (shape().team_warps > 1) {
      share(made.type, results, "[kBlockWarps]");
    }
  }
}

void CudaElements::open_tile(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::reduce) continue;
    const CudaItem& made = items_.item(instr);
    const std::string columns = columns_name(name(instr.results[0]));
    if (made.is_unordered) {
      line("{} {} = {};", made.type, columns, made.empty);
      continue;
    }
    line("{} {}[4];", made.type, columns);
    line("fill_columns({}, {});", columns, made.empty);
  }
}

void CudaElements::close_tile(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::reduce) continue;
    const CudaItem& made = items_.item(instr);
    const std::string value = name(instr.results[0]);
    const bool is_sum = made.is_unordered && !made.is_tuple &&
                        kernel().combiners[instr.combiner].op == ScalarOp::add &&
                        kir::compute_type_bytes(made.types[0]) == 4;
    const std::string joined =
        is_sum ? fmt::format("sum_lanes<{}u>({})", cx().is_short ? facts().short_lanes() : 32,
                             columns_name(value))
               : fmt::format("{}<{}u>({}, {})", made.is_unordered ? "join_lanes" : "join_columns",
                             cx().is_short ? facts().short_lanes() : 32, columns_name(value),
                             made.join);
    if (shape().team_warps == 1) {
      line("{}.take({}, {}, {});", result_name(value), joined, made.empty, made.join);
    } else {
      line(
          "take_round(team, {0}, {1}, first_tile, (u64(len) + kTileElems - 1) / "
          "kTileElems, shared.{0}, {2}, {3});",
          result_name(value), joined, made.empty, made.join);
    }
  }
}

void CudaElements::close_reductions(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::running_sum) {
      line("{} {} = {};", c_type(type(instr.results[1])), name(instr.results[1]),
           carry_name(name(instr.results[0])));
    }
    if (instr.kind != InstrKind::reduce) continue;
    const CudaItem& made = items_.item(instr);
    const std::string value = name(instr.results[0]);
    const std::string reduced = "reduced_" + value;
    line("{} {} = {}.finish({}, {});", made.type, reduced, result_name(value), made.empty,
         made.join);
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      line("{} {} = {};", c_type(type(instr.results[i])), name(instr.results[i]),
           made.part(reduced, i));
    }
  }
}

void CudaElements::emit(const kir::Section& section) {
  cx().level = Level::Element;
  open_reductions(section);
  const bool has_one_tile = shape().result_levels == 0;
  line(has_one_tile
           ? "{"
           : "for (u64 first_tile = 0; first_tile < (u64(len) + kTileElems - 1) / kTileElems; "
             "first_tile += " +
                 team_type() + "::kWarps) {");
  if (has_one_tile) line("constexpr u64 first_tile = 0;");
  line("const u64 tile_first = (first_tile{}) * kTileElems;",
       shape().team_warps == 1 ? "" : " + warp");
  line("const u32 tile_begin = u32(tile_first);");
  line(
      "const u32 tile_len = tile_first >= len ? 0u : u32(at_most(u64(kTileElems), i64(len - "
      "tile_first)));");
  open_tile(section);
  const bool has_whole = rows_.emit(section);
  line("constexpr Access access = Access::Any;");
  line("#pragma unroll 1");
  line("for (u32 row = 0; row * kRowElems < tile_len; ++row) {");
  line("const u32 lane_first = row * kRowElems + 4u * lane;");
  line("const u32 live = live_elems(lane_first, tile_len);");
  line("const u32 j = tile_begin + lane_first;");
  for (const Instr& instr : section.instrs) instrs_.emit(instr);
  line("}");
  if (has_whole) line("}");
  close_tile(section);
  line("}");
  close_reductions(section);
}

std::string columns_name(const std::string& value) {
  return "columns_" + value;
}

std::string carry_name(const std::string& value) {
  return "carry_" + value;
}

void CudaElementInstrs::emit_load(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  if (instr.kind == InstrKind::load_at) {
    return define(instr, "{} ? load_one<{}>({}, i64({})) : {}(0)", acting(instr, 1), stored, buffer,
                  operand(instr.operands[0]), c_type(type(instr.results[0])));
  }
  const std::string made = name(instr.results[0]);
  if (cx().ahead.contains(instr.results[0].index())) {
    return line("const {} (&{})[4] = {}[turn];", c_type(type(instr.results[0])), made,
                rows_name(instr.results[0]));
  }
  define_quad(instr.results[0]);
  line("load_four<{}, access>({}, {}, {}, {});", stored, buffer, lane_place(base_of(instr)),
       limited_live(limit_of(instr)), made);
}

void CudaElementInstrs::emit_store_linear(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  const ValueId base = base_of(instr);
  const std::string live = limited_live(limit_of(instr));
  const std::string value = quad(instr.operands[0]);
  if (is_whole_element(program().buffers[instr.buffers[0]])) {
    return line("store_four<{}, access>({}, {}, {}, {});", stored, buffer, lane_place(base), live,
                value);
  }
  if (cx().is_short) {
    const ValueId limit = limit_of(instr);
    return line("pack_short_row<{}, kRowLanes>({}, {}0, {}, {});", stored, buffer, base_text(base),
                limit ? fmt::format("u32(at_most(len, {}))", name(limit)) : "len", value);
  }
  if (cx().packed.contains(instr.buffers[0])) {
    return line("runs_{}[turn] = run_of<{}>({}, 4u);", buffer, stored, value);
  }
  const char* row = cx().is_whole ? "rows_begin, turn" : "i64(tile_begin + row * kRowElems), 0u";
  line("pack_four<{}, access>({}, {}{}, {}, {}, stage);", stored, buffer, base_text(base), row,
       live, value);
}

// If little is selected, few whole rows hold a stored element. The others are skipped at once.
void CudaElementInstrs::emit_store_at(const Instr& instr) {
  const ValueId pred = predicate_of(instr);
  const bool is_asked = cx().is_whole && pred && facts().is_element(pred);
  if (is_asked) line("if (holds_in_row({})) {{", name(pred));
  line("CINCH_EACH if ({}) store_one<{}>({}, i64({}), {});", acting(instr, 2),
       storage(instr.buffers[0]), buffer_name(instr.buffers[0]), operand(instr.operands[0]),
       operand(instr.operands[1]));
  if (is_asked) line("}");
}

// Elements add in order, lane by lane. Integers add in any order.
void CudaElementInstrs::emit_add_at(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  const std::string index = operand(instr.operands[0]);
  if (kir::adds_in_any_order(program().buffers[instr.buffers[0]])) {
    const bool is_wide = program().buffers[instr.buffers[0]].dtype.bits == 64;
    return line("CINCH_EACH if ({0}) atomicAdd(reinterpret_cast<{1}*>({2}) + i64({3}), {1}({4}));",
                acting(instr, 2), is_wide ? "u64" : "u32", buffer, index,
                operand(instr.operands[1]));
  }
  Instr add{.kind = InstrKind::scalar};
  add.dtype = program().buffers[instr.buffers[0]].dtype;
  const ComputeType types[] = {type(instr.operands[1]), type(instr.operands[1])};
  const std::string sides[] = {fmt::format("load_one<{}>({}, i64({}))", stored, buffer, index),
                               operand(instr.operands[1])};
  line("for (u32 turn = 0; turn < 32u; ++turn) {");
  line("if (turn == lane) {");
  line("CINCH_EACH if ({}) store_one<{}>({}, i64({}), {});", acting(instr, 2), stored, buffer,
       index, element_wise(add, types, sides));
  line("}");
  line("__syncwarp();");
  line("}");
}

void CudaElementInstrs::emit_max_at(const Instr& instr) {
  const bool is_wide = program().buffers[instr.buffers[0]].dtype.bits == 64;
  line("CINCH_EACH if ({}) atomicMax(reinterpret_cast<{}*>({}) + i64({}), {});", acting(instr, 2),
       is_wide ? "u64" : "u32", buffer_name(instr.buffers[0]), operand(instr.operands[0]),
       operand(instr.operands[1]));
}

void CudaElementInstrs::emit_hist_add(const Instr& instr) {
  const bool is_shared = instr.bits <= kSharedBins;
  const std::string bins =
      is_shared ? "bins_" + buffer_name(instr.buffers[0])
                : fmt::format("reinterpret_cast<u32*>({})", buffer_name(instr.buffers[0]));
  const std::string bin = operand(instr.operands[0]);
  line("CINCH_EACH if ({} && {} < {}ull) atomicAdd({} + {}, 1u);", acting(instr, 1), bin,
       instr.bits, bins, bin);
}

void CudaElementInstrs::emit_reduce(const Instr& instr) {
  const CudaItem& made = items_.item(instr);
  const std::string columns = columns_name(name(instr.results[0]));
  std::vector<std::string> parts;
  if (const ValueId counted = facts().counted_truth(instr)) {
    return line("{} += {}(count_four(live, {}));", columns, made.type, name(counted));
  }
  parts.reserve(made.types.size());
  for (std::size_t i = 0; i < made.types.size(); ++i) parts.push_back(operand(instr.operands[i]));
  const bool is_float_sum = !made.is_tuple && made.types[0] == ComputeType::F32 &&
                            kernel().combiners[instr.combiner].op == ScalarOp::add;
  const bool is_asked = !cx().is_whole || optional_operand(instr, made.types.size());
  if (is_float_sum && is_asked) {
    return line("CINCH_EACH add_where({}, {}[c], {});", acting(instr, made.types.size()), columns,
                parts[0]);
  }
  line("CINCH_EACH if ({}) {}{} = {}({}{}, {});", acting(instr, made.types.size()), columns,
       made.is_unordered ? "" : "[c]", made.join, columns, made.is_unordered ? "" : "[c]",
       made.of(parts));
}

void CudaElementInstrs::emit_running_sum(const Instr& instr) {
  const std::string from = quad(instr.operands[0]);
  define_quad(instr.results[0]);
  const std::string made = name(instr.results[0]);
  line("running_sum({}, live, {}, {}, {});", from, instr.exclusive, carry_name(made), made);
}

void CudaElementInstrs::emit_local(const Instr& instr) {
  const std::string local = fmt::format("local{}", instr.index);
  if (instr.kind == InstrKind::local_store) {
    line("CINCH_EACH if (c < live) {}[j + c] = {};", local, operand(instr.operands[0]));
    return line("__syncwarp();");
  }
  const char* made = c_type(type(instr.results[0]));
  if (instr.kind == InstrKind::local_load) {
    return define(instr, "c < live ? {}[j + c] : {}(0)", local, made);
  }
  define(instr, "c >= live ? {2}(0) : j + c == 0u ? {1} : {0}[j + c - 1u]", local,
         operand(instr.operands[0]), made);
}

void CudaElementInstrs::emit_status(const Instr& instr) {
  const std::string truth = operand(instr.operands[0]);
  if (instr.kind == InstrKind::flag_nonfinite) {
    return line("CINCH_EACH if (c < live) note_nonfinite(nonfinite, {});", truth);
  }
  line("CINCH_EACH if (c < live && {}) fail_call(status, {}u);", truth, instr.index);
}

void CudaElementInstrs::emit(const Instr& instr) {
  if (const char* function = facts().short_form(instr)) {
    return define(instr,
                  fmt::format("lang::{}({})", function, operand(facts().short_operand(instr))));
  }
  if (is_element_wise(instr.kind)) {
    return define(instr, element_wise(
                             instr, [&](ValueId value) { return type(value); },
                             [&](ValueId value) { return operand(value); }));
  }
  if (instr.kind == InstrKind::call_extern) return uniform_.emit_call_extern(instr);
  if (is_draw(instr.kind)) return draws_.emit(instr);
  switch (instr.kind) {
    case InstrKind::column:
      return define(instr, "j + c");
    case InstrKind::element:
      return define(instr, "u32(group_first) + j + c");
    case InstrKind::load_linear:
    case InstrKind::load_at:
      return emit_load(instr);
    case InstrKind::store_linear:
      return emit_store_linear(instr);
    case InstrKind::store_at:
      return emit_store_at(instr);
    case InstrKind::add_at:
      return emit_add_at(instr);
    case InstrKind::max_at:
      return emit_max_at(instr);
    case InstrKind::hist_add:
      return emit_hist_add(instr);
    case InstrKind::reduce:
      return emit_reduce(instr);
    case InstrKind::running_sum:
      return emit_running_sum(instr);
    case InstrKind::local_store:
    case InstrKind::local_load:
    case InstrKind::local_previous:
      return emit_local(instr);
    case InstrKind::flag_nonfinite:
    case InstrKind::fail_if:
      return emit_status(instr);
    default:
      return uniform_.emit_leaf(instr);
  }
}

}  // namespace cinch::codegen
