#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/emit/cuda/kernel/elements.h"

namespace cinch::codegen {
using kir::InstrKind;

// Does the tile consist of whole rows, this many at a time? Are addresses suitable for the loads
// and stores, and do blocks of random words begin at the indices?
std::set<std::string> CudaRows::conditions(const kir::Section& section, int num_rows) const {
  std::set<std::string> asked = {fmt::format("tile_len % ({}u * kRowElems) == 0u", num_rows)};
  const auto ask = [&](const std::string& test) { asked.insert(test); };
  for (const Instr& instr : section.instrs) {
    if (is_linear(instr.kind)) {
      ask(fmt::format("holds_rows<{}>({}, {}i64(tile_begin))", storage(instr.buffers[0]),
                      buffer_name(instr.buffers[0]), base_text(base_of(instr))));
      if (const ValueId limit = limit_of(instr)) {
        ask(fmt::format("{} >= i64(tile_begin + tile_len)", name(limit)));
      }
    }
    if (is_draw(instr.kind) && draws_.is_by_rows(instr)) {
      ask(fmt::format("({}) % 8u == 0u", draws_.first_drawn(instr)));
    }
  }
  return asked;
}

// The loop over the tile's rows, this many at a time.
void CudaRows::open_loop(int num_rows) {
  if (facts().is_one_turn(num_rows)) {
    line("{");
    line("constexpr u32 first_row = 0;");
  } else {
    line("#pragma unroll 1");
    line("for (u32 first_row = 0; first_row * kRowElems < tile_len; first_row += {}u) {{",
         num_rows);
  }
}

// Prints the loop over these rows.
void CudaRows::open_turn(int num_rows) {
  line("#pragma unroll");
  line("for (u32 turn = 0; turn < {}u; ++turn) {{", num_rows);
  line("const u32 row = first_row + turn;");
  line("const u32 j = tile_begin + row * kRowElems + 4u * lane;");
}

// Prints the loads of several rows, except loads of what an earlier instruction of the row stores.
std::set<std::size_t> CudaRows::emit_loads_ahead(const kir::Section& section, int num_rows) {
  std::set<std::size_t> ahead;
  std::set<rt::BufferIndex> stored;
  std::string loads;
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::load_linear) {
      stored.insert(instr.buffers.begin(), instr.buffers.end());
      continue;
    }
    if (stored.contains(instr.buffers[0])) continue;
    const ValueId value = instr.results[0];
    ahead.insert(value.index());
    line("{} {}[{}][4];", c_type(type(value)), rows_name(value), num_rows);
    loads +=
        fmt::format("load_four<{}, access>({}, {}, live, {}[turn]);\n", storage(instr.buffers[0]),
                    buffer_name(instr.buffers[0]), lane_place(base_of(instr)), rows_name(value));
    ahead.insert(value.index());
  }
  if (ahead.empty()) return ahead;
  open_turn(num_rows);
  cx().out.raw(loads);
  line("}");
  return ahead;
}

// Computes the values that are the same in a row, from its first element, for all rows. Their loads
// overlap, and come before any store.
void CudaRows::emit_alike_ahead(const kir::Section& section, int num_rows) {
  if (std::ranges::none_of(section.instrs, &Instr::is_alike)) return;
  for (const Instr& instr : section.instrs) {
    if (!instr.is_alike) continue;
    const ValueId value = instr.results[0];
    line("{} {}[{}];", c_type(type(value)), rows_name(value), num_rows);
  }
  open_turn(num_rows);
  line("constexpr u32 c = 0;");
  for (const Instr& instr : section.instrs) {
    const bool is_leaf = instr.kind == InstrKind::element || instr.kind == InstrKind::constant;
    if (is_leaf || instr.is_alike) instrs_.emit(instr);
    if (!instr.is_alike) continue;
    const ValueId value = instr.results[0];
    line("{}[turn] = {}[0];", rows_name(value), name(value));
  }
  line("}");
}

bool CudaRows::emit(const kir::Section& section) {
  const int num_rows = facts().rows_ahead(section);
  if (num_rows == 0) return false;
  cx().is_whole = true;
  cx().rounds_again = facts().is_repeatable(section.instrs) &&
                      std::ranges::any_of(section.instrs, [&](const Instr& instr) {
                        return kir::rounds_to_int(instr) && draws_.is_by_rows(instr);
                      });
  line("bool is_done = false;");
  line("if constexpr (!kIsStep) {");
  line("is_done = {};", fmt::join(conditions(section, num_rows), " && "));
  line("}");
  line("if (is_done) {");
  line("constexpr Access access = Access::Whole;");
  line("constexpr u32 live = 4u;");
  if (cx().rounds_again) line("bool is_rare = false;");
  open_loop(num_rows);
  line("const i64 rows_begin = i64(tile_begin + first_row * kRowElems);");
  line("const i64 lane_begin = i64(tile_begin + first_row * kRowElems + 4u * lane);");
  cx().ahead = emit_loads_ahead(section, num_rows);
  draws_.emit_ahead(section, num_rows);
  emit_alike_ahead(section, num_rows);
  for (const Instr& instr : section.instrs) {
    if (!facts().is_packed_by_rows(section, instr)) continue;
    cx().packed.insert(instr.buffers[0]);
    line("u32 runs_{}[{}];", buffer_name(instr.buffers[0]), num_rows);
  }
  open_turn(num_rows);
  for (const Instr& instr : section.instrs) {
    if (!instr.is_alike) {
      instrs_.emit(instr);
      continue;
    }
    define_quad(instr.results[0]);
    line("fill_columns({}, {}[turn]);", name(instr.results[0]), rows_name(instr.results[0]));
  }
  cx().ahead.clear();
  line("}");
  for (const Instr& instr : section.instrs) {
    if (!facts().is_packed_by_rows(section, instr)) continue;
    line("pack_rows<{0}, {1}u>({2}, {3}rows_begin, runs_{2});", storage(instr.buffers[0]), num_rows,
         buffer_name(instr.buffers[0]), base_text(base_of(instr)));
  }
  cx().packed.clear();
  line("}");
  if (cx().rounds_again) line("is_done = !__any_sync(kAllLanes, is_rare);");
  line("}");
  line("if (!is_done) {");
  cx().is_whole = cx().rounds_again = false;
  return true;
}

using kir::SectionKind;

// Later sections of the group find these values here.
void CudaShortRows::emit_load(const Instr& load) {
  const ValueId value = load.results[0];
  const auto number = [](ValueId of) { return of ? of.index() : SIZE_MAX; };
  const KeptKey key = {load.buffers[0], number(base_of(load)), number(limit_of(load))};
  const auto [kept, is_new] = kept_.try_emplace(key, name(value));
  if (!is_new) {
    return line("const {} (&{})[4] = {};", c_type(type(value)), name(value), kept->second);
  }
  define_quad(value);
  const ValueId base = base_of(load), limit = limit_of(load);
  line("load_four<{}, Access::Any>({}, {}i64(4u * lane), 0u, {}, {});", storage(load.buffers[0]),
       buffer_name(load.buffers[0]), base_text(base),
       limit ? fmt::format("live_elems(live, 4u * lane, {})", name(limit)) : "live", name(value));
}

void CudaShortRows::emit_elements(const kir::Section& section) {
  cx().level = Level::Element;
  elements_.open_reductions(section);
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::load_linear) emit_load(instr);
  }
  line("{");
  elements_.open_tile(section);
  line("constexpr Access access = Access::Any;");
  line("const u32 j = 4u * lane;");
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::load_linear) elements_.instrs().emit(instr);
  }
  elements_.close_tile(section);
  line("}");
  elements_.close_reductions(section);
  // Loaded values whose buffers the section stored are out of date.
  std::set<rt::BufferIndex> stored;
  for (const Instr& instr : section.instrs) {
    if (!kir::is_load(instr.kind)) stored.insert(instr.buffers.begin(), instr.buffers.end());
  }
  std::erase_if(kept_, [&](const auto& kept) { return stored.contains(std::get<0>(kept.first)); });
}

void CudaShortRows::emit() {
  line("if constexpr (!kIsStep) {");
  line("if (next + kRows <= end) {");
  line("const u64 group = next + lane_index() / kRowLanes;");
  line("const u32 lane = lane_index() % kRowLanes;");
  line("const Team<1u> team{lane};");
  line("next += kRows;");
  line("constexpr bool is_active = true;");
  line("const u64 group_first = group * group_elems;");
  const std::int64_t len = longest_group(program(), kernel());
  line("constexpr u32 len = {}u;", len);
  line(len == 4 * std::int64_t{facts().short_lanes()}
           ? "constexpr u32 live = 4u;"
           : "const u32 live = live_elems(4u * lane, len);");
  cx().is_short = true;
  for (std::size_t s = 1; s < kernel().sections.size(); ++s) {
    const kir::Section& section = kernel().sections[s];
    line("__syncwarp();");
    if (section.kind == SectionKind::Elements) {
      emit_elements(section);
    } else {
      cx().level = Level::Group;
      for (const Instr& instr : section.instrs) uniform_.emit(instr);
    }
  }
  cx().is_short = false;
  kept_.clear();
  line("continue;");
  line("}");
  line("}");
}

}  // namespace cinch::codegen
