#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cpu/kernel/instrs.h"
#include "codegen/kir/cost.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
using kir::InstrKind;

// How many lanes of this vector are below the limit. In whole tiles, all lanes are.
std::string CpuMemory::active_text(ValueId limit) const {
  if (!limit) return "active";
  return "whole.value ? active : " + count_text(limit, "j", "active");
}

void CpuMemory::emit_load_linear(const Instr& instr) {
  const Storage s = facts().storage(instr.buffers[0]);
  const ValueId result = instr.results[0];
  if (s.is_bit()) {
    const std::string bits = fmt::format("staged_bits({}, i)", stage_name(instr));
    return define(result, is_bool(s.dtype)
                              ? bits
                              : fmt::format("truth_to<{}>({})", c_type(type(result)), bits));
  }
  if (s.is_packed) {
    const std::string from = fmt::format("b{} + u64({}) * {} / 8", instr.buffers[0],
                                         base_text(base_of(instr), "tile"), s.bits);
    return define(result, from_storage(s, fmt::format("packed_lanes<{}>(whole, {}, i, {})", s.bits,
                                                      stage_name(instr), from)));
  }
  define(result, from_storage(
                     s, fmt::format("load_lanes<{}>(b{}, {}, {})", s.element, instr.buffers[0],
                                    base_text(base_of(instr), "j"), active_text(limit_of(instr)))));
}

void CpuMemory::emit_store_linear(const Instr& instr) {
  const Storage s = facts().storage(instr.buffers[0]);
  const std::string x = lanes(instr.operands[0]);
  if (s.is_bit()) {
    const std::string bits = is_bool(s.dtype) ? x : fmt::format("is_nonzero({} & 1)", x);
    return line("stage_bits({}, i, {});", stage_name(instr), bits);
  }
  if (s.is_packed) {
    return line("set_local_lanes({} + i, {});", stage_name(instr), to_storage(s, x));
  }
  line("store_lanes<{}>(b{}, {}, {}, {});", s.element, instr.buffers[0],
       base_text(base_of(instr), "j"), active_text(limit_of(instr)),
       stored_text(s, instr.operands[0]));
}

// A float that is not NaN is canonical. A narrow float is rounded once: a value that was just
// rounded is stored from its unrounded operand.
std::string CpuMemory::stored_text(const Storage& s, ValueId value) {
  const Instr* made = facts().definition(value);
  const bool is_rounded = is_narrow_float(s.dtype) && made && made->kind == InstrKind::convert &&
                          made->dtype == s.dtype && facts().is_element(made->operands[0]) &&
                          type(made->operands[0]) != kir::ComputeType::Bool;
  const bool is_as_stored = (s.dtype == kF32 || s.dtype == kF64) && facts().is_element(value) &&
                            !facts().range(value).may_be_nan;
  if (is_as_stored) return lanes(value);
  if (!is_rounded) return to_storage(s, lanes(value));
  return fmt::format("lang::to_{}({})", dtype_name(s.dtype), lanes(made->operands[0]));
}

// How many elements a constant table has that fits two vectors of the widest kind; else 0.
std::int64_t CpuMemory::elems_of_small_table(rt::BufferIndex buffer) const {
  constexpr std::int64_t kMostPicked = 32;
  const rt::BufferInfo& info = facts().program().buffers[buffer];
  const HostExprPool& pool = *facts().program().info.exprs;
  if (info.role != rt::BufferRole::Constant || !pool.is_const(info.num_elems)) return 0;
  const std::int64_t num = pool.const_value(info.num_elems).as_int();
  return num <= kMostPicked ? num : 0;
}

// The prelude's function for the pattern of the lanes' places.
std::string CpuMemory::load_function(const Instr& load) const {
  const Instr* index = facts().definition(load.operands[0]);
  const Storage s = facts().storage(load.buffers[0]);
  constexpr int kWordBits = 32;  // narrower elements were measured slower
  const char* function = "gather_lanes";
  if (s.bits >= kWordBits) {
    const bool is_word = s.bits == kWordBits && type(load.operands[0]) == kir::ComputeType::U32;
    const std::int64_t num = is_word ? elems_of_small_table(load.buffers[0]) : 0;
    if (index && index->kind == InstrKind::element) {
      function = "load_row";
    } else if (facts().is_alike_in_vectors(load.operands[0])) {
      function = "load_alike";
    } else if (num > 0) {
      return fmt::format("pick_lanes<{}, {}>", s.element, num);
    }
  }
  return fmt::format("{}<{}>", function, s.element);
}

void CpuMemory::emit_load_at(const Instr& instr) {
  const Storage s = facts().storage(instr.buffers[0]);
  const rt::BufferIndex b = instr.buffers[0];
  const ValueId pred = predicate_of(instr);
  const std::string index = operand(instr.operands[0]);
  std::string text;
  if (is_lanes() && s.is_bit() && is_bool(s.dtype)) {
    define(instr.results[0], "gather_bits(b{}, {}, {})", b, index, acting(pred));
    return count_lanes(instr, false, pred);
  }
  if (is_lanes()) {
    text = s.is_packed
               ? fmt::format("gather_packed<{}, {}>(b{}, {}, {})", s.bits, s.element, b, index,
                             acting(pred))
               : fmt::format("{}(b{}, {}, {})", load_function(instr), b, index, acting(pred));
  } else {
    text = s.is_packed
               ? fmt::format("{}(load_packed<{}>(b{}, i64({})))", s.element, s.bits, b, index)
               : fmt::format("load_one<{}>(b{}, i64({}))", s.element, b, index);
    if (pred) text = fmt::format("({} ? {} : {}(0))", uniform(pred), text, s.element);
  }
  define(instr.results[0], from_storage(s, text));
  count_lanes(instr, false, pred);
}

// For a compact store whose condition also demands places below a limit: the rest of the condition,
// and the limit. Otherwise there is no limit. So nobody needs the place of each lane.
std::pair<kir::ValueId, kir::ValueId> CpuMemory::limited_pred(const Instr& store) const {
  const ValueId pred = predicate_of(store);
  const Instr* both = pred ? facts().scalar_of(pred, ScalarOp::bit_and) : nullptr;
  const Instr* below = both ? facts().scalar_of(both->operands[1], ScalarOp::lt) : nullptr;
  const bool is_limit = below && below->operands[0] == store.operands[0] &&
                        !facts().is_element(below->operands[1]) &&
                        type(below->operands[1]) == kir::ComputeType::U32;
  if (!is_limit || facts().counts_accesses()) return {};
  return {both->operands[0], below->operands[1]};
}

void CpuMemory::emit_store_at(const Instr& instr) {
  const Storage s = facts().storage(instr.buffers[0]);
  CINCH_CHECK(!s.is_packed, "store_at to a packed buffer");
  const rt::BufferIndex b = instr.buffers[0];
  const ValueId pred = predicate_of(instr);
  const std::string index = operand(instr.operands[0]);
  const std::string x = to_storage(s, operand(instr.operands[1]));
  if (instr.is_compact) {
    const Instr& place = *facts().definition(instr.operands[0]);
    const std::string first =
        fmt::format("i64({}({} + sum_{}.before))", c_type(type(instr.operands[0])),
                    uniform(place.operands[0]), name(place.operands[1]));
    const auto [kept, limit] = limited_pred(instr);
    line(limit ? fmt::format("store_kept_lanes_below<{}>(b{}, i64({}), {}, {}, {});", s.element, b,
                             uniform(limit), first, x, acting(kept))
               : fmt::format("store_kept_lanes<{}>(b{}, {}, {}, {});", s.element, b, first, x,
                             acting(pred)));
  } else if (cx().level == Level::Element && facts().find_run(instr.operands[0])) {
    line("store_run<{}>(b{}, {}, {}, {});", s.element, b, index, x, acting(pred));
  } else if (cx().level == Level::Element) {
    line("scatter_lanes<{}>(b{}, {}, {}, {});", s.element, b, index, x, acting(pred));
  } else {
    const std::string guard = pred ? fmt::format("if ({}) ", uniform(pred)) : std::string();
    line("{}store_one<{}>(b{}, i64({}), {});", guard, s.element, b, index, x);
  }
  count_lanes(instr, true, pred);
}

void CpuMemory::emit_add_at(const Instr& instr) {
  const Storage s = facts().storage(instr.buffers[0]);
  CINCH_CHECK(!s.is_packed, "add_at to a packed buffer");
  const ValueId pred = predicate_of(instr);
  const rt::BufferIndex b = instr.buffers[0];
  if (kir::adds_in_any_order(facts().program().buffers[b])) {
    line("cells_{}.take({}, {}, {});", b, lanes(instr.operands[0]), lanes(instr.operands[1]),
         acting(pred));
  } else {
    Instr add{.kind = InstrKind::scalar};
    add.dtype = s.dtype;
    const kir::ComputeType types[] = {type(instr.operands[1]), type(instr.operands[1])};
    const std::string sides[] = {from_storage(s, "old"), "x"};
    const std::string sum = element_wise(add, types, sides);
    line("add_lanes<{0}, {1}>(b{2}, {3}, {4}, {5}, []({0} old, {1} x) {{ return {0}({6}); }});",
         s.element, c_type(type(instr.operands[1])), b, lanes(instr.operands[0]),
         lanes(instr.operands[1]), acting(pred), to_storage(s, sum));
  }
  count_lanes(instr, false, pred);
  count_lanes(instr, true, pred);
}

void CpuMemory::emit_max_at(const Instr& instr) {
  const ValueId pred = predicate_of(instr);
  const Storage s = facts().storage(instr.buffers[0]);
  line("max_lanes<{}>(b{}, {}, {}, {});", s.element, instr.buffers[0], lanes(instr.operands[0]),
       lanes(instr.operands[1]), acting(pred));
  count_lanes(instr, false, pred);
  count_lanes(instr, true, pred);
}

void CpuMemory::emit_argsort(const Instr& instr) {
  const Storage s = facts().storage(instr.buffers[0]);
  const std::string begin = fmt::format("i64({})", uniform(instr.operands[0]));
  const std::string place = fmt::format("{} + i64(place)", begin);
  const std::string element =
      s.is_packed
          ? fmt::format("{}(load_packed<{}>(b{}, {}))", s.element, s.bits, instr.buffers[0], place)
          : fmt::format("load_one<{}>(b{}, {})", s.element, instr.buffers[0], place);
  const std::string len = fmt::format("u32({})", uniform(instr.operands[1]));
  line("argsort_row([&](u32 place) {{ return {}; }}, {}, {}, {}u, b{}, b{}, u64({}));",
       from_storage(s, element), len, instr.descending, instr.index, instr.buffers[1],
       instr.buffers[2], begin);
  if (facts().counts_accesses()) {
    line("bits_read += u64({}) * {};", len, s.bits);
    line("bits_written += u64({}) * 32;", len);
  }
}

void CpuMemory::emit(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::load_linear:
      return emit_load_linear(instr);
    case InstrKind::load_at:
      return emit_load_at(instr);
    case InstrKind::store_linear:
      return emit_store_linear(instr);
    case InstrKind::store_at:
      return emit_store_at(instr);
    case InstrKind::add_at:
      return emit_add_at(instr);
    case InstrKind::max_at:
      return emit_max_at(instr);
    case InstrKind::hist_add:
      return line("histogram_{}.take({}, {});", instr.buffers[0], lanes(instr.operands[0]),
                  acting(predicate_of(instr)));
    case InstrKind::argsort_row:
      return emit_argsort(instr);
    default:
      CINCH_BUG("not a memory instruction");
  }
}

void CpuMemory::open_tile(const Instr& instr) {
  const bool is_load = instr.kind == InstrKind::load_linear;
  if (!is_load && instr.kind != InstrKind::store_linear) return;
  count_run(instr, !is_load);
  const Storage s = facts().storage(instr.buffers[0]);
  if (!s.is_packed) return;
  const std::string stage = stage_name(instr);
  if (!is_load && cx().phases.takes_rows_together()) {
    return line("{0}* const {1} = rows_{1} + slot * len;", s.element, stage);
  }
  line(s.is_bit() ? fmt::format("BitStage {};", stage)
                  : fmt::format("{} {}[kTile];", s.element, stage));
  if (!is_load || !s.is_bit()) return;
  line("unpack_bits(b{}, {}, {}, {});", instr.buffers[0], base_text(base_of(instr), "tile"), stage,
       count_text(limit_of(instr), "tile", "tile_len"));
}

void CpuMemory::fetch_ahead(const Instr& instr) {
  const bool is_store = instr.kind == InstrKind::store_linear;
  if (!is_store && instr.kind != InstrKind::load_linear) return;
  const Storage s = facts().storage(instr.buffers[0]);
  if (s.is_packed) return;
  line("if constexpr (whole.value) fetch_ahead<{}, {}>(b{}, {}, first);", s.element, is_store,
       instr.buffers[0], base_text(base_of(instr), "tile"));
}

// Inside the loops over a tile's vectors. Loops over whole tiles read elements from the buffer if
// they can.
void CpuMemory::fill_stage(const Instr& instr) {
  if (!facts().is_staged_load(instr)) return;
  const Storage s = facts().storage(instr.buffers[0]);
  line("if constexpr (!whole.value || !kTakesInPlace<{}>) {{", s.bits);
  line("unpack_run<{}>(b{}, {}, {}, {}, (tile_len + W - 1) / W * W);", s.bits, instr.buffers[0],
       base_text(base_of(instr), "tile"), stage_name(instr),
       count_text(limit_of(instr), "tile", "tile_len"));
  line("}");
}

void CpuMemory::close_tile(const Instr& instr) {
  if (instr.kind != InstrKind::store_linear || cx().phases.takes_rows_together()) return;
  const Storage s = facts().storage(instr.buffers[0]);
  if (!s.is_packed) return;
  const std::string base = base_text(base_of(instr), "tile");
  const std::string count = count_text(limit_of(instr), "tile", "tile_len");
  const std::string call =
      s.is_bit() ? std::string("pack_bits") : fmt::format("pack_run<{}>", s.bits);
  line("{}(b{}, {}, {}, {});", call, instr.buffers[0], base, stage_name(instr), count);
}

void CpuMemory::open_rows(const Instr& store) {
  const Storage s = facts().storage(store.buffers[0]);
  if (s.is_packed) line("{} rows_{}[kTile];", s.element, stage_name(store));
}

void CpuMemory::close_rows(const Instr& store) {
  const Storage s = facts().storage(store.buffers[0]);
  if (!s.is_packed) return;
  const std::string first = "i64(chunk * len)", count = "chunk_len * len";
  const ValueId limit = optional_operand(store, 2);
  const std::string end = limit ? uniform(facts().definition(limit)->operands[0]) : std::string();
  line("pack_run<{}>(b{}, {}, rows_{}, {});", s.bits, store.buffers[0], first, stage_name(store),
       limit ? fmt::format("places_below(i64({}) - {}, i64(0), {})", end, first, count) : count);
}

void CpuMemory::count_run(const Instr& instr, bool is_store) {
  if (!facts().counts_accesses()) return;
  if (!is_store && !kir::is_counted_load(facts().program(), kernel(), cx().section, cx().instr))
    return;
  line("bits_{} += u64({}) * {};", is_store ? "written" : "read",
       count_text(limit_of(instr), "tile", "tile_len"), facts().storage(instr.buffers[0]).bits);
}

void CpuMemory::count_lanes(const Instr& instr, bool is_store, ValueId pred) {
  if (!facts().counts_accesses() || cx().level == Level::Kernel || cx().level == Level::Combiner)
    return;
  const int bits = facts().storage(instr.buffers[0]).bits;
  const char* counter = is_store ? "written" : "read";
  if (cx().level == Level::Element) {
    line("bits_{} += lane_bits({}, {});", counter, acting(pred), bits);
  } else {
    line("bits_{} += {} ? {} : 0;", counter, acting(pred), bits);
  }
}

using kir::ValueId;

ValueId CpuCompaction::placed_truth(const std::vector<Instr>& instrs) const {
  ValueId truth;
  for (const Instr& instr : instrs) {
    switch (instr.kind) {
      case InstrKind::load_linear:
      case InstrKind::load_at:
      case InstrKind::local_load:
        break;
      case InstrKind::running_sum:
        if (truth) return {};
        truth = facts_.counted_truth(instr);
        if (!truth) return {};
        break;
      case InstrKind::store_at:
        if (!instr.is_compact) return {};
        break;
      default:
        if (!kir::is_computed(instr.kind)) return {};
    }
  }
  return truth;
}

std::set<std::size_t> CpuCompaction::needed_to_place(const std::vector<Instr>& instrs) const {
  std::set<std::size_t> needed;
  const ValueId truth = placed_truth(instrs);
  if (!truth) return needed;
  std::set<std::uint32_t> values = {truth.index()};
  for (std::size_t i = instrs.size(); i-- > 0;) {
    const bool is_needed =
        std::any_of(instrs[i].results.begin(), instrs[i].results.end(),
                    [&](ValueId result) { return values.contains(result.index()); });
    if (!is_needed) continue;
    needed.insert(i);
    for (const ValueId operand : instrs[i].operands) {
      if (operand) values.insert(operand.index());
    }
  }
  return needed;
}

// ---- hits: what an earlier phase knows of the lanes that a section places ----

CpuCompaction::CpuCompaction(const CpuKernelFacts& facts, const CpuPhases& phases) : facts_(facts) {
  const std::vector<CpuPhases::Phase>& all = phases.all();
  if (all.size() < 2 || facts_.has_many_tiles()) return;
  for (std::size_t p = 1; p < all.size(); ++p) {
    for (const CpuPhases::Piece& piece : all[p].pieces) {
      const kir::Section& section = facts_.kernel().sections[piece.section];
      if (section.kind != kir::SectionKind::Elements) continue;
      const ValueId truth = placed_truth(section.instrs);
      if (!truth) continue;
      const auto known = same_truth(truth, all[p].pieces.front().section);
      if (known) hits_.try_emplace(known->index(), piece.section);
    }
  }
}

std::optional<ValueId> CpuCompaction::same_truth(ValueId truth, std::size_t before_section) const {
  for (std::size_t s = 0; s < before_section; ++s) {
    const kir::Section& section = facts_.kernel().sections[s];
    // A section that places lanes skips vectors.
    if (section.kind != kir::SectionKind::Elements || placed_truth(section.instrs)) continue;
    KnownPairs known;
    for (const Instr& instr : section.instrs) {
      if (instr.results.size() == 1 && is_same_element(instr.results[0], truth, known)) {
        return instr.results[0];
      }
    }
  }
  return std::nullopt;
}

// Are both computed in the same way from the same operands, by instructions that always give the
// same?
bool CpuCompaction::is_same_element(ValueId a, ValueId b, KnownPairs& known) const {
  if (!a || !b || a == b) return a == b;
  if (known.contains({a.index(), b.index()})) return true;
  const Instr *x = facts_.definition(a), *y = facts_.definition(b);
  if (!x || !y || x->kind != y->kind || x->operands.size() != y->operands.size()) return false;
  const bool is_same = x->scalar_op == y->scalar_op && x->bits == y->bits && x->index == y->index &&
                       x->buffers == y->buffers && x->dtype == y->dtype &&
                       x->from_dtype == y->from_dtype && facts_.type(a) == facts_.type(b);
  if (!is_same) return false;
  switch (x->kind) {
    case InstrKind::load_linear:
    case InstrKind::load_at:
      if (!is_only_read(x->buffers[0])) return false;
      break;
    default:
      if (!kir::is_computed(x->kind)) return false;
  }
  for (std::size_t i = 0; i < x->operands.size(); ++i) {
    if (!is_same_element(x->operands[i], y->operands[i], known)) return false;
  }
  known.emplace(a.index(), b.index());
  return true;
}

bool CpuCompaction::is_only_read(rt::BufferIndex buffer) const {
  for (const kir::Section& section : facts_.kernel().sections) {
    for (const Instr& instr : section.instrs) {
      if (kir::is_load(instr.kind)) continue;
      if (std::find(instr.buffers.begin(), instr.buffers.end(), buffer) != instr.buffers.end())
        return false;
    }
  }
  return true;
}

std::set<std::size_t> CpuCompaction::known_by_hits(const std::vector<Instr>& instrs) const {
  const ValueId truth = placed_truth(instrs);
  std::set<std::size_t> known;
  std::set<std::uint32_t> used;
  for (std::size_t i = instrs.size(); i-- > 0;) {
    const bool is_root =
        instrs[i].kind == InstrKind::running_sum || instrs[i].kind == InstrKind::store_at;
    const bool is_used =
        std::ranges::any_of(instrs[i].results, [&](ValueId v) { return used.contains(v.index()); });
    const bool is_truth = !instrs[i].results.empty() && instrs[i].results[0] == truth;
    if (is_truth || !(is_root || is_used)) {
      known.insert(i);
      continue;
    }
    for (const ValueId operand : instrs[i].operands) {
      if (operand) used.insert(operand.index());
    }
  }
  return known;
}

bool CpuCompaction::is_placed_by_hits(std::size_t section) const {
  return std::any_of(hits_.begin(), hits_.end(),
                     [&](const auto& hits) { return hits.second == section; });
}

}  // namespace cinch::codegen
