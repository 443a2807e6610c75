// CudaKernelEmitter: tiles of whole rows, without masks, several rows at a time: their loads are on
// their way together, and a block of random words serves the lanes that share it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/emit/cuda/kernel.h"
#include "codegen/emit/value_facts.h"
#include "codegen/kir/builder.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using kir::InstrKind;

namespace {

// Of what a lane loads ahead, and of the instructions that a turn of the loop is to have.
constexpr std::uint32_t kAheadBytes = 64;
constexpr std::size_t kTurnInstrs = 160, kEightRowsInstrs = 8;
// Sections that draw take two rows at least, so that lanes share blocks.
constexpr int kMostRows = 8, kMostDrawRows = 4;

bool is_linear(const kir::Instr& instr) {
  return instr.kind == InstrKind::load_linear || instr.kind == InstrKind::store_linear;
}

kir::ValueId base_of(const kir::Instr& instr) {
  return optional_operand(instr, instr.kind == InstrKind::load_linear ? 0 : 1);
}

kir::ValueId limit_of(const kir::Instr& instr) {
  return optional_operand(instr, instr.kind == InstrKind::load_linear ? 1 : 2);
}

}  // namespace

int rows_ahead(const kir::KernelProgram& program, const kir::Section& section,
               std::int64_t longest_group) {
  if (section.kind != kir::SectionKind::Elements || section.instrs.size() > kTwiceInstrs) return 0;
  if (std::ranges::none_of(section.instrs, is_linear)) return 0;
  std::uint32_t lane_bytes = 0;
  bool draws = false;
  for (const kir::Instr& instr : section.instrs) {
    draws = draws || is_draw(instr.kind);
    if (instr.kind != InstrKind::load_linear) continue;
    lane_bytes += std::max<std::uint32_t>(1, program.buffers[instr.buffers[0]].storage_bits / 2);
  }
  int rows = draws ? kMostDrawRows : kMostRows;
  while (rows > (draws ? 2 : 1) &&
         (static_cast<std::uint32_t>(rows) * lane_bytes > kAheadBytes ||
          (rows == kMostRows && section.instrs.size() > kEightRowsInstrs) ||
          static_cast<std::size_t>(rows) * section.instrs.size() > kTurnInstrs)) {
    rows /= 2;
  }
  while (rows > 1 && longest_group < std::int64_t{rows} * kir::kRowElems) rows /= 2;
  return longest_group < kir::kRowElems ? 0 : rows;
}

bool has_whole_rows(const kir::KernelProgram& program, const kir::Kernel& kernel) {
  const std::int64_t longest = longest_group(program, kernel);
  return std::ranges::any_of(kernel.sections, [&](const kir::Section& section) {
    return rows_ahead(program, section, longest) > 0;
  });
}

std::string CudaKernelEmitter::rows_name(ValueId value) const {
  return "rows_" + name(value);
}

std::string CudaKernelEmitter::halves_name(const Instr& round) const {
  return "halves_" + name(round.results[0]);
}

// Does the index of the draw go up from lane to lane, so that what a row draws is known?
bool CudaKernelEmitter::is_drawn_by_rows(const Instr& instr) const {
  return is_whole_ && level_ == Level::Element && instr.kind != InstrKind::random_index &&
         facts_.find_run(instr.operands[index_operand(instr)]).has_value();
}

// The index that a draw has at the group's first element.
std::string CudaKernelEmitter::first_drawn(const Instr& draw) const {
  const auto run = facts_.find_run(draw.operands[index_operand(draw)]);
  CINCH_CHECK(run, "a draw by rows has no run");
  std::string first = run->is_of_tensor ? "u32(group_first)" : "0u";
  for (const ValueId addend : run->addends) first += " + " + name(addend);
  return first;
}

// Is the tile whole rows, so many at a time, at addresses that suit what is loaded and stored and
// at indices where blocks of random words begin?
std::set<std::string> CudaKernelEmitter::whole_rows_conditions(const kir::Section& section,
                                                               int num_rows) const {
  std::set<std::string> asked = {fmt::format("tile_len % ({}u * kRowElems) == 0u", num_rows)};
  const auto ask = [&](const std::string& test) { asked.insert(test); };
  for (const Instr& instr : section.instrs) {
    if (is_linear(instr)) {
      ask(fmt::format("holds_rows<{}>({}, {}i64(tile_begin))", storage(instr.buffers[0]),
                      buffer_name(instr.buffers[0]), base_text(base_of(instr))));
      if (const ValueId limit = limit_of(instr)) {
        ask(fmt::format("{} >= i64(tile_begin + tile_len)", name(limit)));
      }
    }
    if (is_draw(instr.kind) && is_drawn_by_rows(instr)) {
      ask(fmt::format("({}) % 8u == 0u", first_drawn(instr)));
    }
  }
  return asked;
}

// Are so many rows a group?
bool CudaKernelEmitter::is_one_turn(int num_rows) const {
  return kernel_.group_kind == kir::GroupKind::Row && num_rows > 0 &&
         longest_ == std::int64_t{num_rows} * kir::kRowElems && shape_.team_warps == 1;
}

// Opens a block for the tiles that are not done; false where there is no such loop. A tile with a
// draw that ties is done again, by the long way round, where that leaves no trace.
bool CudaKernelEmitter::emit_whole_rows(const kir::Section& section) {
  const int num_rows = rows_ahead(program_, section, longest_);
  if (num_rows == 0) return false;
  is_whole_ = true;
  rounds_again_ = facts_.is_repeatable(section.instrs) &&
                  std::ranges::any_of(section.instrs, [&](const Instr& instr) {
                    return kir::rounds_to_int(instr) && is_drawn_by_rows(instr);
                  });
  line("bool is_done = false;");
  line("if constexpr (!kIsStep) {");
  line(fmt::format("is_done = {};", fmt::join(whole_rows_conditions(section, num_rows), " && ")));
  line("}");
  line("if (is_done) {");
  line("constexpr Access access = Access::Whole;");
  line("constexpr u32 live = 4u;");
  if (rounds_again_) line("bool is_rare = false;");
  if (is_one_turn(num_rows)) {
    line("{");
    line("constexpr u32 first_row = 0;");
  } else {
    line("#pragma unroll 1");
    line(
        fmt::format("for (u32 first_row = 0; first_row * kRowElems < tile_len; "
                    "first_row += {}u) {{",
                    num_rows));
  }
  line("const i64 rows_begin = i64(tile_begin + first_row * kRowElems);");
  line("const i64 lane_begin = i64(tile_begin + first_row * kRowElems + 4u * lane);");
  ahead_ = emit_loads_ahead(section, num_rows);
  emit_draws_ahead(section, num_rows);
  emit_alike_ahead(section, num_rows);
  open_packs(section, num_rows);
  open_turn(num_rows);
  for (const Instr& instr : section.instrs) {
    instr.is_alike ? emit_alike(instr) : emit_element(instr);
  }
  ahead_.clear();
  line("}");
  close_packs(section, num_rows);
  line("}");
  if (rounds_again_) line("is_done = !__any_sync(kAllLanes, is_rare);");
  line("}");
  line("if (!is_done) {");
  is_whole_ = rounds_again_ = false;
  return true;
}

// Is the packed store one of several rows at once? Four neighbours then lie within a word, and
// nothing of the section reads the buffer.
bool CudaKernelEmitter::is_packed_by_rows(const kir::Section& section, const Instr& store) const {
  if (store.kind != InstrKind::store_linear) return false;
  const auto bits = program_.buffers[store.buffers[0]].storage_bits;
  return (bits == 1 || bits == 2 || bits == 4) &&
         std::ranges::none_of(section.instrs, [&](const Instr& instr) {
           return &instr != &store &&
                  std::ranges::find(instr.buffers, store.buffers[0]) != instr.buffers.end();
         });
}

void CudaKernelEmitter::open_packs(const kir::Section& section, int num_rows) {
  for (const Instr& instr : section.instrs) {
    if (!is_packed_by_rows(section, instr)) continue;
    packed_.insert(instr.buffers[0]);
    line(fmt::format("u32 runs_{}[{}];", buffer_name(instr.buffers[0]), num_rows));
  }
}

void CudaKernelEmitter::close_packs(const kir::Section& section, int num_rows) {
  for (const Instr& instr : section.instrs) {
    if (!is_packed_by_rows(section, instr)) continue;
    line(fmt::format("pack_rows<{0}, {1}u>({2}, {3}rows_begin, runs_{2});",
                     storage(instr.buffers[0]), num_rows, buffer_name(instr.buffers[0]),
                     base_text(base_of(instr))));
  }
  packed_.clear();
}

// One of the rows at hand.
void CudaKernelEmitter::open_turn(int num_rows) {
  line("#pragma unroll");
  line(fmt::format("for (u32 turn = 0; turn < {}u; ++turn) {{", num_rows));
  line("const u32 row = first_row + turn;");
  line("const u32 j = tile_begin + row * kRowElems + 4u * lane;");
}

// Neighbours from where the lane stands, or the row. Whole rows lie a constant apart.
std::string CudaKernelEmitter::lane_place(ValueId base) const {
  return base_text(base) + (is_whole_ ? "lane_begin, turn" : "i64(j), 0u");
}
std::string CudaKernelEmitter::row_place(ValueId base) const {
  return base_text(base) +
         (is_whole_ ? "rows_begin, turn" : "i64(tile_begin + row * kRowElems), 0u");
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
    if (stored.contains(instr.buffers[0])) continue;
    const ValueId value = instr.results[0];
    ahead.insert(value.index());
    line(fmt::format("{} {}[{}][4];", c_type(type(value)), rows_name(value), num_rows));
    loads +=
        fmt::format("load_four<{}, access>({}, {}, live, {}[turn]);\n", storage(instr.buffers[0]),
                    buffer_name(instr.buffers[0]), lane_place(base_of(instr)), rows_name(value));
    ahead.insert(value.index());
  }
  if (ahead.empty()) return ahead;
  open_turn(num_rows);
  out_.raw(loads);
  line("}");
  return ahead;
}

// What is the same in a row, by its first element, for all rows: loads among it are on their way
// together, and before any store.
void CudaKernelEmitter::emit_alike_ahead(const kir::Section& section, int num_rows) {
  if (std::ranges::none_of(section.instrs, &Instr::is_alike)) return;
  for (const Instr& instr : section.instrs) {
    if (!instr.is_alike) continue;
    const ValueId value = instr.results[0];
    line(fmt::format("{} {}[{}];", c_type(type(value)), rows_name(value), num_rows));
  }
  open_turn(num_rows);
  line("constexpr u32 c = 0;");
  for (const Instr& instr : section.instrs) {
    const bool is_leaf = instr.kind == InstrKind::element || instr.kind == InstrKind::constant;
    if (is_leaf || instr.is_alike) emit_element(instr);
    if (!instr.is_alike) continue;
    const ValueId value = instr.results[0];
    line(fmt::format("{}[turn] = {}[0];", rows_name(value), name(value)));
  }
  line("}");
}

void CudaKernelEmitter::emit_alike(const Instr& instr) {
  define_quad(instr.results[0]);
  line(fmt::format("fill_columns({}, {}[turn]);", name(instr.results[0]),
                   rows_name(instr.results[0])));
}

// The 16 bits that each element of the rows rounds with.
void CudaKernelEmitter::emit_draws_ahead(const kir::Section& section, int num_rows) {
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::stochastic_round || !is_drawn_by_rows(instr)) continue;
    line(fmt::format("u64 {}[{}];", halves_name(instr), num_rows));
    line(fmt::format("random_half_rows<{}u>({}, {} + tile_begin + first_row * kRowElems, {});",
                     num_rows, stream_name(instr), first_drawn(instr), halves_name(instr)));
  }
}

}  // namespace cinch::codegen
