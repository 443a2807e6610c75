// CudaKernelEmitter: element sections. A loop over tiles of the group, in it one over the 8 rows of
// a tile; a lane holds four elements of a row, of which the first `live` exist.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/kernel.h"
#include "codegen/emit/value_facts.h"
#include "codegen/kir/builder.h"
#include "codegen/kir/instr_info.h"
#include "codegen/kir/structure.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;

namespace {
std::string result_name(const std::string& value) {
  return "results_" + value;
}
std::string columns_name(const std::string& value) {
  return "columns_" + value;
}
std::string carry_name(const std::string& value) {
  return "carry_" + value;
}
}  // namespace

void CudaKernelEmitter::emit_elements(const kir::Section& section) {
  level_ = Level::Element;
  open_reductions(section);
  const bool has_one_tile = shape_.result_levels == 0;
  line(has_one_tile
           ? "{"
           : "for (u64 first_tile = 0; first_tile < (u64(len) + kTileElems - 1) / kTileElems; "
             "first_tile += " +
                 team_type() + "::kWarps) {");
  if (has_one_tile) line("constexpr u64 first_tile = 0;");
  line(fmt::format("const u64 tile_first = (first_tile{}) * kTileElems;",
                   shape_.team_warps == 1 ? "" : " + warp"));
  line("const u32 tile_begin = u32(tile_first);");
  line(
      "const u32 tile_len = tile_first >= len ? 0u : u32(at_most(u64(kTileElems), i64(len - "
      "tile_first)));");
  open_tile(section);
  const bool has_whole = emit_whole_rows(section);
  line("constexpr Access access = Access::Any;");
  line("#pragma unroll 1");
  line("for (u32 row = 0; row * kRowElems < tile_len; ++row) {");
  line("const u32 lane_first = row * kRowElems + 4u * lane;");
  line("const u32 live = live_elems(lane_first, tile_len);");
  line("const u32 j = tile_begin + lane_first;");
  for (const Instr& instr : section.instrs) emit_element(instr);
  line("}");
  if (has_whole) line("}");
  close_tile(section);
  line("}");
  close_reductions(section);
}

void CudaKernelEmitter::open_reductions(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::running_sum) {
      const std::string carry = carry_name(name(instr.results[0]));
      line(fmt::format("{0} {1} = {0}(0);", c_type(type(instr.results[0])), carry));
    }
    if (instr.kind != InstrKind::reduce) continue;
    const Item& made = item(instr);
    const std::string results = result_name(name(instr.results[0]));
    line(made.is_unordered && shape_.result_levels > 0
             ? fmt::format("JoinedResults<{}> {};", made.type, results)
             : fmt::format("TileResults<{}, {}> {};", made.type, shape_.result_levels, results));
    line(fmt::format("{}.clear({});", results, made.empty));
    if (shape_.team_warps > 1) {
      share(made.type, results, "[kBlockWarps]");
    }
  }
}

void CudaKernelEmitter::open_tile(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::reduce) continue;
    const Item& made = item(instr);
    const std::string columns = columns_name(name(instr.results[0]));
    if (made.is_unordered) {
      line(fmt::format("{} {} = {};", made.type, columns, made.empty));
      continue;
    }
    line(fmt::format("{} {}[4];", made.type, columns));
    line(fmt::format("fill_columns({}, {});", columns, made.empty));
  }
}

void CudaKernelEmitter::close_tile(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::reduce) continue;
    const Item& made = item(instr);
    const std::string value = name(instr.results[0]);
    const bool is_sum = made.is_unordered && !made.is_tuple &&
                        kernel_.combiners[instr.combiner].op == ScalarOp::add &&
                        kir::compute_type_bytes(made.types[0]) == 4;
    const std::string joined =
        is_sum
            ? fmt::format("sum_lanes<{}u>({})", is_short_ ? short_lanes_ : 32, columns_name(value))
            : fmt::format("{}<{}u>({}, {})", made.is_unordered ? "join_lanes" : "join_columns",
                          is_short_ ? short_lanes_ : 32, columns_name(value), made.join);
    if (shape_.team_warps == 1) {
      line(fmt::format("{}.take({}, {}, {});", result_name(value), joined, made.empty, made.join));
    } else {
      line(
          fmt::format("take_round(team, {0}, {1}, first_tile, (u64(len) + kTileElems - 1) / "
                      "kTileElems, shared.{0}, {2}, {3});",
                      result_name(value), joined, made.empty, made.join));
    }
  }
}

void CudaKernelEmitter::close_reductions(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::running_sum) {
      line(fmt::format("{} {} = {};", c_type(type(instr.results[1])), name(instr.results[1]),
                       carry_name(name(instr.results[0]))));
    }
    if (instr.kind != InstrKind::reduce) continue;
    const Item& made = item(instr);
    const std::string value = name(instr.results[0]);
    const std::string reduced = "reduced_" + value;
    line(fmt::format("{} {} = {}.finish({}, {});", made.type, reduced, result_name(value),
                     made.empty, made.join));
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      line(fmt::format("{} {} = {};", c_type(type(instr.results[i])), name(instr.results[i]),
                       item_part(made, reduced, i)));
    }
  }
}

// "c < live" and the predicate.
std::string CudaKernelEmitter::acting(const Instr& instr, std::size_t pred_index) const {
  return "c < live" + pred_text(instr, pred_index);
}

void CudaKernelEmitter::emit_element(const Instr& instr) {
  if (is_element_wise(instr.kind)) {
    return define(instr, element_wise(
                             instr, [&](ValueId value) { return type(value); },
                             [&](ValueId value) { return operand(value); }));
  }
  if (instr.kind == InstrKind::call_extern) return emit_call_extern(instr);
  if (is_draw(instr.kind)) return emit_draw(instr);
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
    case InstrKind::running_sum: {
      const std::string from = quad(instr.operands[0]);
      define_quad(instr.results[0]);
      const std::string made = name(instr.results[0]);
      return line(fmt::format("running_sum({}, live, {}, {}, {});", from, instr.exclusive,
                              carry_name(made), made));
    }
    case InstrKind::local_store:
    case InstrKind::local_load:
    case InstrKind::local_previous:
      return emit_local(instr);
    case InstrKind::flag_nonfinite:
    case InstrKind::fail_if:
      return emit_status(instr);
    default:
      return emit_leaf(instr);
  }
}

// How many of the lane's elements lie below an optional limit too.
std::string CudaKernelEmitter::limited_live(ValueId limit) const {
  return limit && !is_whole_ ? fmt::format("live_elems(live, j, {})", name(limit)) : "live";
}

std::string CudaKernelEmitter::base_text(ValueId base) const {
  return base ? name(base) + " + " : std::string();
}

void CudaKernelEmitter::emit_load(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  if (instr.kind == InstrKind::load_at) {
    return define(instr,
                  fmt::format("{} ? load_one<{}>({}, i64({})) : {}(0)", acting(instr, 1), stored,
                              buffer, operand(instr.operands[0]), c_type(type(instr.results[0]))));
  }
  const std::string made = name(instr.results[0]);
  if (ahead_.contains(instr.results[0].index())) {
    return line(fmt::format("const {} (&{})[4] = {}[turn];", c_type(type(instr.results[0])), made,
                            rows_name(instr.results[0])));
  }
  define_quad(instr.results[0]);
  line(fmt::format("load_four<{}, access>({}, {}, {}, {});", stored, buffer,
                   lane_place(optional_operand(instr, 0)), limited_live(optional_operand(instr, 1)),
                   made));
}

void CudaKernelEmitter::emit_store_linear(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  const ValueId base = optional_operand(instr, 1);
  const std::string live = limited_live(optional_operand(instr, 2));
  const std::string value = quad(instr.operands[0]);
  if (is_whole_element(program_.buffers[instr.buffers[0]])) {
    return line(fmt::format("store_four<{}, access>({}, {}, {}, {});", stored, buffer,
                            lane_place(base), live, value));
  }
  if (is_short_) {
    const ValueId limit = optional_operand(instr, 2);
    return line(fmt::format(
        "pack_short_row<{}, kRowLanes>({}, {}0, {}, {});", stored, buffer, base_text(base),
        limit ? fmt::format("u32(at_most(len, {}))", name(limit)) : "len", value));
  }
  if (packed_.contains(instr.buffers[0])) {
    return line(fmt::format("runs_{}[turn] = run_of<{}>({}, 4u);", buffer, stored, value));
  }
  line(fmt::format("pack_four<{}, access>({}, {}, {}, {}, stage);", stored, buffer, row_place(base),
                   live, value));
}

// Of whole rows, few of which hold an element that is stored where little is selected, the others
// are passed over at once.
void CudaKernelEmitter::emit_store_at(const Instr& instr) {
  const ValueId pred = optional_operand(instr, 2);
  const bool is_asked = is_whole_ && pred && is_element(pred);
  if (is_asked) line(fmt::format("if (holds_in_row({})) {{", name(pred)));
  line(fmt::format("CINCH_EACH if ({}) store_one<{}>({}, i64({}), {});", acting(instr, 2),
                   storage(instr.buffers[0]), buffer_name(instr.buffers[0]),
                   operand(instr.operands[0]), operand(instr.operands[1])));
  if (is_asked) line("}");
}

// Lane by lane: elements add in order. Of integers any order will do.
void CudaKernelEmitter::emit_add_at(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  const std::string index = operand(instr.operands[0]);
  if (kir::adds_in_any_order(program_.buffers[instr.buffers[0]])) {
    const bool is_wide = program_.buffers[instr.buffers[0]].dtype.bits == 64;
    return line(fmt::format(
        "CINCH_EACH if ({0}) atomicAdd(reinterpret_cast<{1}*>({2}) + i64({3}), {1}({4}));",
        acting(instr, 2), is_wide ? "u64" : "u32", buffer, index, operand(instr.operands[1])));
  }
  Instr add{.kind = InstrKind::scalar};
  add.dtype = program_.buffers[instr.buffers[0]].dtype;
  const ComputeType types[] = {type(instr.operands[1]), type(instr.operands[1])};
  const std::string sides[] = {fmt::format("load_one<{}>({}, i64({}))", stored, buffer, index),
                               operand(instr.operands[1])};
  line("for (u32 turn = 0; turn < 32u; ++turn) {");
  line("if (turn == lane) {");
  line(fmt::format("CINCH_EACH if ({}) store_one<{}>({}, i64({}), {});", acting(instr, 2), stored,
                   buffer, index, element_wise(add, types, sides)));
  line("}");
  line("__syncwarp();");
  line("}");
}

void CudaKernelEmitter::emit_max_at(const Instr& instr) {
  const bool is_wide = program_.buffers[instr.buffers[0]].dtype.bits == 64;
  line(fmt::format("CINCH_EACH if ({}) atomicMax(reinterpret_cast<{}*>({}) + i64({}), {});",
                   acting(instr, 2), is_wide ? "u64" : "u32", buffer_name(instr.buffers[0]),
                   operand(instr.operands[0]), operand(instr.operands[1])));
}

void CudaKernelEmitter::emit_hist_add(const Instr& instr) {
  const bool is_shared = instr.bits <= kSharedBins;
  const std::string bins =
      is_shared ? "bins_" + buffer_name(instr.buffers[0])
                : fmt::format("reinterpret_cast<u32*>({})", buffer_name(instr.buffers[0]));
  const std::string bin = operand(instr.operands[0]);
  line(fmt::format("CINCH_EACH if ({} && {} < {}ull) atomicAdd({} + {}, 1u);", acting(instr, 1),
                   bin, instr.bits, bins, bin));
}

// Where a sum of 32 bits counts truths: the array of these.
std::optional<std::string> CudaKernelEmitter::counted_truth(const Instr& reduce) const {
  const std::optional<ScalarOp> op = kernel_.combiners[reduce.combiner].op;
  if (op != ScalarOp::add || reduce.operands.size() != 1) return std::nullopt;
  const Instr* made = facts_.definition(reduce.operands[0]);
  const ComputeType to = type(reduce.operands[0]);
  if (!made || made->kind != InstrKind::convert ||
      (to != ComputeType::U32 && to != ComputeType::I32)) {
    return std::nullopt;
  }
  const ValueId truth = made->operands[0];
  if (type(truth) != ComputeType::Bool || !is_element(truth)) return std::nullopt;
  return name(truth);
}

void CudaKernelEmitter::emit_reduce(const Instr& instr) {
  const Item& made = item(instr);
  const std::string columns = columns_name(name(instr.results[0]));
  std::vector<std::string> parts;
  if (const auto counted = counted_truth(instr)) {
    return line(fmt::format("{} += {}(count_four(live, {}));", columns, made.type, *counted));
  }
  parts.reserve(made.types.size());
  for (std::size_t i = 0; i < made.types.size(); ++i) parts.push_back(operand(instr.operands[i]));
  const bool is_float_sum = !made.is_tuple && made.types[0] == ComputeType::F32 &&
                            kernel_.combiners[instr.combiner].op == ScalarOp::add;
  const bool is_asked = !is_whole_ || optional_operand(instr, made.types.size());
  if (is_float_sum && is_asked) {
    return line(fmt::format("CINCH_EACH add_where({}, {}[c], {});",
                            acting(instr, made.types.size()), columns, parts[0]));
  }
  line(fmt::format("CINCH_EACH if ({}) {}{} = {}({}{}, {});", acting(instr, made.types.size()),
                   columns, made.is_unordered ? "" : "[c]", made.join, columns,
                   made.is_unordered ? "" : "[c]", item_of(made, parts)));
}

void CudaKernelEmitter::emit_local(const Instr& instr) {
  const std::string local = fmt::format("local{}", instr.index);
  if (instr.kind == InstrKind::local_store) {
    line(
        fmt::format("CINCH_EACH if (c < live) {}[j + c] = {};", local, operand(instr.operands[0])));
    return line("__syncwarp();");
  }
  const char* made = c_type(type(instr.results[0]));
  if (instr.kind == InstrKind::local_load) {
    return define(instr, fmt::format("c < live ? {}[j + c] : {}(0)", local, made));
  }
  define(instr, fmt::format("c >= live ? {2}(0) : j + c == 0u ? {1} : {0}[j + c - 1u]", local,
                            operand(instr.operands[0]), made));
}

void CudaKernelEmitter::emit_draw(const Instr& instr) {
  if (instr.kind == InstrKind::random_index) {
    return define(instr, fmt::format("lang::random_index({}, {})", permutation_name(instr),
                                     operand(instr.operands[0])));
  }
  if (instr.kind == InstrKind::stochastic_round) return emit_round(instr);
  const std::string index = quad(instr.operands[0]);
  define_quad(instr.results[0]);
  line(fmt::format("{}_four<{}>({}, {}, {});", kir::instr_info(instr.kind).name,
                   is_drawn_by_rows(instr), stream_name(instr), index, name(instr.results[0])));
}

void CudaKernelEmitter::emit_round(const Instr& instr) {
  const std::string x = quad(instr.operands[0]), index = quad(instr.operands[1]);
  const std::string stream = stream_name(instr);
  const std::string halves = is_drawn_by_rows(instr)
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
                  instr.dtype.bits, facts_.rounded_range(instr));
  if (rounds_again_) {
    return line(fmt::format("fixed_int_four{}({}, {}, {}, is_rare);", kind, halves, x, made));
  }
  line(fmt::format("stochastic_int_four{}({}, {}, {}, {}, {});", kind, stream, halves, x, index,
                   made));
}

void CudaKernelEmitter::emit_status(const Instr& instr) {
  const std::string truth = operand(instr.operands[0]);
  if (instr.kind == InstrKind::flag_nonfinite) {
    return line(fmt::format("CINCH_EACH if (c < live) note_nonfinite(nonfinite, {});", truth));
  }
  line(fmt::format("CINCH_EACH if (c < live && {}) fail_call(status, {}u);", truth, instr.index));
}

}  // namespace cinch::codegen
