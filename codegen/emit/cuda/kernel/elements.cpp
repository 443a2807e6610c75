#include "codegen/emit/cuda/kernel/elements.h"

#include <fmt/format.h>

#include "codegen/kir/compute_type.h"

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
      line(fmt::format("{0} {1} = {0}(0);", c_type(type(instr.results[0])), carry));
    }
    if (instr.kind != InstrKind::reduce) continue;
    const CudaItem& made = items_.item(instr);
    const std::string results = result_name(name(instr.results[0]));
    line(made.is_unordered && shape().result_levels > 0
             ? fmt::format("JoinedResults<{}> {};", made.type, results)
             : fmt::format("TileResults<{}, {}> {};", made.type, shape().result_levels, results));
    line(fmt::format("{}.clear({});", results, made.empty));
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
      line(fmt::format("{} {} = {};", made.type, columns, made.empty));
      continue;
    }
    line(fmt::format("{} {}[4];", made.type, columns));
    line(fmt::format("fill_columns({}, {});", columns, made.empty));
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
      line(fmt::format("{}.take({}, {}, {});", result_name(value), joined, made.empty, made.join));
    } else {
      line(
          fmt::format("take_round(team, {0}, {1}, first_tile, (u64(len) + kTileElems - 1) / "
                      "kTileElems, shared.{0}, {2}, {3});",
                      result_name(value), joined, made.empty, made.join));
    }
  }
}

void CudaElements::close_reductions(const kir::Section& section) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::running_sum) {
      line(fmt::format("{} {} = {};", c_type(type(instr.results[1])), name(instr.results[1]),
                       carry_name(name(instr.results[0]))));
    }
    if (instr.kind != InstrKind::reduce) continue;
    const CudaItem& made = items_.item(instr);
    const std::string value = name(instr.results[0]);
    const std::string reduced = "reduced_" + value;
    line(fmt::format("{} {} = {}.finish({}, {});", made.type, reduced, result_name(value),
                     made.empty, made.join));
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      line(fmt::format("{} {} = {};", c_type(type(instr.results[i])), name(instr.results[i]),
                       made.part(reduced, i)));
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
  line(fmt::format("const u64 tile_first = (first_tile{}) * kTileElems;",
                   shape().team_warps == 1 ? "" : " + warp"));
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

}  // namespace cinch::codegen
