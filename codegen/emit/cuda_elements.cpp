// CudaKernelEmitter: element sections. A loop over tiles of the group, in it one over the 8 rows of
// a tile; a lane holds four elements of a row, of which the first `live` exist.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda_kernel.h"
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
std::string rows_name(const std::string& value) {
  return "rows_" + value;
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
  const bool draws =
      std::ranges::any_of(section.instrs, [](const Instr& instr) { return is_draw(instr.kind); });
  // Bodies that draw are long, and keep a multiprocessor busy with one row as it is.
  const bool has_whole = section.instrs.size() <= kTwiceInstrs && !draws;
  if (has_whole) emit_whole_rows(section);
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

// A load or store of neighbours whose number is the row's alone.
bool CudaKernelEmitter::is_row_access(const Instr& instr) {
  if (instr.kind == InstrKind::load_linear) return !optional_operand(instr, 1);
  return instr.kind == InstrKind::store_linear && !optional_operand(instr, 2);
}

// Is the tile whole rows, so many at a time, at addresses that suit what is loaded and stored?
std::string CudaKernelEmitter::whole_rows_condition(const kir::Section& section,
                                                    int num_rows) const {
  std::string condition = fmt::format("tile_len % ({}u * kRowElems) == 0u", num_rows);
  std::set<std::string> asked;
  for (const Instr& instr : section.instrs) {
    if (!is_row_access(instr)) continue;
    const std::size_t base = instr.kind == InstrKind::load_linear ? 0 : 1;
    const std::string test =
        fmt::format(" && holds_rows<{}>({}, {}i64(tile_begin))", storage(instr.buffers[0]),
                    buffer_name(instr.buffers[0]), base_text(optional_operand(instr, base)));
    if (asked.insert(test).second) condition += test;
  }
  return condition;
}

// Tiles of whole rows, without masks; opens a block for the others.
void CudaKernelEmitter::emit_whole_rows(const kir::Section& section) {
  const auto num_loads = std::ranges::count(section.instrs, InstrKind::load_linear, &Instr::kind);
  const int num_rows = num_loads == 1 && section.instrs.size() <= kTwoRowsInstrs ? 2 : 1;
  line(fmt::format("const bool is_whole = {};", whole_rows_condition(section, num_rows)));
  line("if (is_whole) {");
  line("constexpr Access access = Access::Whole;");
  line("constexpr u32 live = 4u;");
  line("#pragma unroll 1");
  line(
      fmt::format("for (u32 first_row = 0; first_row * kRowElems < tile_len; "
                  "first_row += {}u) {{",
                  num_rows));
  ahead_ = emit_loads_ahead(section, num_rows);
  open_turn(num_rows);
  for (const Instr& instr : section.instrs) emit_element(instr);
  ahead_.clear();
  line("}");
  line("}");
  line("} else {");
}

// One of the rows at hand.
void CudaKernelEmitter::open_turn(int num_rows) {
  line("#pragma unroll");
  line(fmt::format("for (u32 turn = 0; turn < {}u; ++turn) {{", num_rows));
  line("const u32 row = first_row + turn;");
  line("const u32 j = tile_begin + row * kRowElems + 4u * lane;");
}

// The loads of several rows; not of what an earlier instruction of the row stores.
std::set<std::size_t> CudaKernelEmitter::emit_loads_ahead(const kir::Section& section,
                                                          int num_rows) {
  std::set<std::size_t> ahead;
  std::set<rt::BufferIndex> stored;
  std::string loads;
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::load_linear) {
      stored.insert(instr.buffers.begin(), instr.buffers.end());
      continue;
    }
    if (!is_row_access(instr) || stored.contains(instr.buffers[0])) continue;
    const ValueId value = instr.results[0];
    const std::string rows = rows_name(name(value));
    line(fmt::format("{} {}[{}][4];", c_type(type(value)), rows, num_rows));
    loads += fmt::format("load_four<{}, access>({}, {}i64(j), live, {}[turn]);\n",
                         storage(instr.buffers[0]), buffer_name(instr.buffers[0]),
                         base_text(optional_operand(instr, 0)), rows);
    ahead.insert(value.index());
  }
  if (ahead.empty()) return ahead;
  open_turn(num_rows);
  out_.raw(loads);
  line("}");
  return ahead;
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
    line(fmt::format("TileResults<{}, {}> {};", made.type, shape_.result_levels, results));
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
    line(fmt::format("{} {}[4];", made.type, columns));
    line(fmt::format("fill_columns({}, {});", columns, made.empty));
  }
}

void CudaKernelEmitter::close_tile(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::reduce) continue;
    const Item& made = item(instr);
    const std::string value = name(instr.results[0]);
    const std::string joined = fmt::format("join_columns({}, {})", columns_name(value), made.join);
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
      line(fmt::format("const {} {} = {};", c_type(type(instr.results[1])), name(instr.results[1]),
                       carry_name(name(instr.results[0]))));
    }
    if (instr.kind != InstrKind::reduce) continue;
    const Item& made = item(instr);
    const std::string value = name(instr.results[0]);
    const std::string reduced = "reduced_" + value;
    line(fmt::format("const {} {} = {}.finish({}, {});", made.type, reduced, result_name(value),
                     made.empty, made.join));
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      line(fmt::format("const {} {} = {};", c_type(type(instr.results[i])), name(instr.results[i]),
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
  return limit ? fmt::format("live_elems(live, j, {})", name(limit)) : "live";
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
                            rows_name(made)));
  }
  define_quad(instr.results[0]);
  line(fmt::format("load_four<{}, {}>({}, {}i64(j), {}, {});", stored, access_of(instr), buffer,
                   base_text(optional_operand(instr, 0)), limited_live(optional_operand(instr, 1)),
                   made));
}

// How it goes to memory: a number of neighbours of its own is not known to be four.
const char* CudaKernelEmitter::access_of(const Instr& instr) {
  return is_row_access(instr) ? "access" : "Access::Any";
}

void CudaKernelEmitter::emit_store_linear(const Instr& instr) {
  const std::string stored = storage(instr.buffers[0]);
  const std::string buffer = buffer_name(instr.buffers[0]);
  const std::string base = base_text(optional_operand(instr, 1));
  const std::string live = limited_live(optional_operand(instr, 2));
  const std::string value = quad(instr.operands[0]);
  if (is_whole_element(program_.buffers[instr.buffers[0]])) {
    return line(fmt::format("store_four<{}, {}>({}, {}i64(j), {}, {});", stored, access_of(instr),
                            buffer, base, live, value));
  }
  line(fmt::format("pack_four<{}, {}>({}, {}i64(tile_begin + row * kRowElems), {}, {}, stage);",
                   stored, access_of(instr), buffer, base, live, value));
}

void CudaKernelEmitter::emit_store_at(const Instr& instr) {
  line(fmt::format("CINCH_EACH if ({}) store_one<{}>({}, i64({}), {});", acting(instr, 2),
                   storage(instr.buffers[0]), buffer_name(instr.buffers[0]),
                   operand(instr.operands[0]), operand(instr.operands[1])));
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

void CudaKernelEmitter::emit_hist_add(const Instr& instr) {
  const bool is_shared = instr.bits <= kSharedBins;
  const std::string bins =
      is_shared ? fmt::format("bins{}", instr.buffers[0])
                : fmt::format("reinterpret_cast<u32*>({})", buffer_name(instr.buffers[0]));
  const std::string bin = operand(instr.operands[0]);
  line(fmt::format("CINCH_EACH if ({} && {} < {}ull) atomicAdd({} + {}, 1u);", acting(instr, 1),
                   bin, instr.bits, bins, bin));
}

void CudaKernelEmitter::emit_reduce(const Instr& instr) {
  const Item& made = item(instr);
  const std::string columns = columns_name(name(instr.results[0]));
  std::vector<std::string> parts;
  parts.reserve(made.types.size());
  for (std::size_t i = 0; i < made.types.size(); ++i) parts.push_back(operand(instr.operands[i]));
  line(fmt::format("CINCH_EACH if ({}) {}[c] = {}({}[c], {});", acting(instr, made.types.size()),
                   columns, made.join, columns, item_of(made, parts)));
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
  const bool is_round = instr.kind == InstrKind::stochastic_round;
  if (instr.kind == InstrKind::random_index) {
    return define(instr, fmt::format("lang::random_index({}, {})", permutation_name(instr),
                                     operand(instr.operands[0])));
  }
  const std::string x = is_round ? quad(instr.operands[0]) + ", " : std::string();
  const std::string index = quad(instr.operands[is_round ? 1 : 0]);
  const bool is_converted = kir::rounds_to_int(instr);
  const std::string made =
      is_converted ? name(instr.results[0]) + "_rounded" : name(instr.results[0]);
  is_converted ? line(fmt::format("f32 {}[4];", made)) : define_quad(instr.results[0]);
  line(fmt::format("{}_four({}, {}{}, {});", kir::instr_info(instr.kind).name, stream_name(instr),
                   x, index, made));
  if (is_converted) define(instr, as_integer(instr, made + "[c]"));
}

void CudaKernelEmitter::emit_status(const Instr& instr) {
  const std::string truth = operand(instr.operands[0]);
  if (instr.kind == InstrKind::flag_nonfinite) {
    return line(fmt::format("CINCH_EACH nonfinite |= c < live && !lang::isfinite({});", truth));
  }
  line(fmt::format("CINCH_EACH if (c < live && {}) fail_call(status, {}u);", truth, instr.index));
}

}  // namespace cinch::codegen
