// CudaKernelEmitter: rows of a few elements, several of which share a warp: as many lanes take a
// row as it has quads, and each lane computes what is the same for its row.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/emit/cuda/kernel.h"
#include "codegen/emit/value_facts.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::SectionKind;

namespace {

// Rows of 8 to 64 elements.
constexpr std::int64_t kLeastRow = 8, kMostRow = 64;

bool is_power_of_two(std::int64_t x) {
  return x > 0 && (x & (x - 1)) == 0;
}

// Does a lane do this for its own elements, or for its own row, alone?
bool is_for_a_lane(const kir::Instr& instr, SectionKind kind) {
  switch (instr.kind) {
    case InstrKind::load_at:
    case InstrKind::fail_if:
    case InstrKind::constant:
    case InstrKind::group:
    case InstrKind::group_len:
    case InstrKind::param:
    case InstrKind::host_size:
      return true;
    case InstrKind::store_at:
      return kind == SectionKind::Group;
    case InstrKind::load_linear:
    case InstrKind::store_linear:
    case InstrKind::column:
    case InstrKind::element:
    case InstrKind::reduce:
    case InstrKind::flag_nonfinite:
      return kind == SectionKind::Elements;
    default:
      return is_element_wise(instr.kind) || is_draw(instr.kind);
  }
}

}  // namespace

// Rows of a packed buffer begin and end with words where they follow each other at a distance of
// whole words.
bool CudaKernelEmitter::has_whole_words(const Instr& store) const {
  const auto bits = program_.buffers[store.buffers[0]].storage_bits;
  if (bits != 1 && bits != 2 && bits != 4) return false;
  const ValueId base = optional_operand(store, 1);
  const Instr* made = base ? facts_.definition(base) : nullptr;
  if (!made || made->kind != InstrKind::scalar || made->scalar_op != ScalarOp::mul) return false;
  const Instr *group = facts_.definition(made->operands[0]),
              *distance = facts_.definition(made->operands[1]);
  return group && distance && group->kind == InstrKind::group &&
         distance->kind == InstrKind::constant && distance->bits * bits % 32 == 0;
}

std::uint32_t CudaKernelEmitter::find_short_lanes() const {
  const bool is_apart = kernel_.group_kind == kir::GroupKind::Row && longest_ >= kLeastRow &&
                        longest_ <= kMostRow && is_power_of_two(longest_) &&
                        !kernel_.info.is_sequential && kernel_.locals.empty();
  if (!is_apart) return 0;
  for (const kir::Section& section : kernel_.sections) {
    if (section.kind == SectionKind::Kernel) continue;
    if (section.instrs.size() > kTwiceInstrs || loads_its_stores(section)) return 0;
    for (const Instr& instr : section.instrs) {
      if (!is_for_a_lane(instr, section.kind)) return 0;
      if (instr.kind == InstrKind::store_linear &&
          !is_whole_element(program_.buffers[instr.buffers[0]]) && !has_whole_words(instr)) {
        return 0;
      }
    }
  }
  return static_cast<std::uint32_t>(longest_) / 4;
}

// Does the section load neighbours of what it stores itself? Short rows are loaded first.
bool CudaKernelEmitter::loads_its_stores(const kir::Section& section) {
  std::set<rt::BufferIndex> loaded, stored;
  for (const Instr& instr : section.instrs) {
    (instr.kind == InstrKind::load_linear ? loaded : stored)
        .insert(instr.buffers.begin(), instr.buffers.end());
  }
  return std::ranges::any_of(loaded, [&](rt::BufferIndex b) { return stored.contains(b); });
}

// The groups of a warp from `first` on: as long as there are enough, several at a time.
void CudaKernelEmitter::emit_short_groups() {
  line(fmt::format("constexpr u32 kRowLanes = {}u;", short_lanes_));
  line("constexpr u64 kRows = 32u / kRowLanes;");
  line(fmt::format("const u64 end = first + {0}u < num_groups ? first + {0}u : num_groups;",
                   shape_.multiple));
  line("for (u64 next = first; next < end;) {");
  line("if constexpr (!kIsStep) {");
  line("if (next + kRows <= end) {");
  line("const u64 group = next + lane_index() / kRowLanes;");
  line("const u32 lane = lane_index() % kRowLanes;");
  line("const Team<1u> team{lane};");
  line("next += kRows;");
  line("constexpr bool is_active = true;");
  line("const u64 group_first = group * group_elems;");
  line("constexpr u32 len = 4u * kRowLanes;");
  is_short_ = true;
  for (std::size_t s = 1; s < kernel_.sections.size(); ++s) {
    const kir::Section& section = kernel_.sections[s];
    line("__syncwarp();");
    if (section.kind == SectionKind::Elements) {
      emit_short_elements(section);
    } else {
      level_ = Level::Group;
      for (const Instr& instr : section.instrs) emit_uniform(instr);
    }
  }
  is_short_ = false;
  kept_.clear();
  line("continue;");
  line("}");
  line("}");
  line("const u64 group = next++;");
  line("constexpr bool is_active = true;");
  emit_group_body();
  line("}");
}

// What the section stored is no longer what was loaded.
void CudaKernelEmitter::forget_stored(const kir::Section& section) {
  std::set<rt::BufferIndex> stored;
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::load_linear || instr.kind == InstrKind::load_at) continue;
    stored.insert(instr.buffers.begin(), instr.buffers.end());
  }
  std::erase_if(kept_, [&](const auto& kept) { return stored.contains(std::get<0>(kept.first)); });
}

// A load's buffer, base and limit.
CudaKernelEmitter::KeptKey CudaKernelEmitter::kept_key(const Instr& load) {
  const auto number = [](ValueId value) { return value ? value.index() : SIZE_MAX; };
  return {load.buffers[0], number(optional_operand(load, 0)), number(optional_operand(load, 1))};
}

// What the group's sections load again they find here.
void CudaKernelEmitter::emit_short_load(const Instr& load) {
  const ValueId value = load.results[0];
  const auto [kept, is_new] = kept_.try_emplace(kept_key(load), name(value));
  if (!is_new) {
    return line(
        fmt::format("const {} (&{})[4] = {};", c_type(type(value)), name(value), kept->second));
  }
  define_quad(value);
  const ValueId base = optional_operand(load, 0), limit = optional_operand(load, 1);
  line(fmt::format("load_four<{}, Access::Any>({}, {}i64(4u * lane), 0u, {}, {});",
                   storage(load.buffers[0]), buffer_name(load.buffers[0]), base_text(base),
                   limit ? fmt::format("live_elems(4u, 4u * lane, {})", name(limit)) : "4u",
                   name(value)));
}

void CudaKernelEmitter::emit_short_elements(const kir::Section& section) {
  level_ = Level::Element;
  open_reductions(section);
  for (const Instr& instr : section.instrs) {
    if (instr.kind == InstrKind::load_linear) emit_short_load(instr);
  }
  line("{");
  open_tile(section);
  line("constexpr Access access = Access::Any;");
  line("constexpr u32 live = 4u;");
  line("const u32 j = 4u * lane;");
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::load_linear) emit_element(instr);
  }
  close_tile(section);
  line("}");
  close_reductions(section);
  forget_stored(section);
}

}  // namespace cinch::codegen
