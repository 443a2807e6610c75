#include "codegen/emit/cuda/kernel/elements.h"

#include <fmt/format.h>

#include "codegen/kir/compute_type.h"

namespace cinch::codegen {

using kir::InstrKind;
using kir::SectionKind;

// Forgets loaded values whose buffers the section stored.
void CudaShortRows::forget_stored(const kir::Section& section) {
  std::set<rt::BufferIndex> stored;
  for (const Instr& instr : section.instrs) {
    if (kir::is_load(instr.kind)) continue;
    stored.insert(instr.buffers.begin(), instr.buffers.end());
  }
  std::erase_if(kept_, [&](const auto& kept) { return stored.contains(std::get<0>(kept.first)); });
}

// A load's buffer, base and limit.
CudaShortRows::KeptKey CudaShortRows::kept_key(const Instr& load) {
  const auto number = [](ValueId value) { return value ? value.index() : SIZE_MAX; };
  return {load.buffers[0], number(base_of(load)), number(limit_of(load))};
}

// Later sections of the group find these values here.
void CudaShortRows::emit_load(const Instr& load) {
  const ValueId value = load.results[0];
  const auto [kept, is_new] = kept_.try_emplace(kept_key(load), name(value));
  if (!is_new) {
    return line(
        fmt::format("const {} (&{})[4] = {};", c_type(type(value)), name(value), kept->second));
  }
  define_quad(value);
  const ValueId base = base_of(load), limit = limit_of(load);
  line(fmt::format("load_four<{}, Access::Any>({}, {}i64(4u * lane), 0u, {}, {});",
                   storage(load.buffers[0]), buffer_name(load.buffers[0]), base_text(base),
                   limit ? fmt::format("live_elems(4u, 4u * lane, {})", name(limit)) : "4u",
                   name(value)));
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
  line("constexpr u32 live = 4u;");
  line("const u32 j = 4u * lane;");
  for (const Instr& instr : section.instrs) {
    if (instr.kind != InstrKind::load_linear) elements_.instrs().emit(instr);
  }
  elements_.close_tile(section);
  line("}");
  elements_.close_reductions(section);
  forget_stored(section);
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
  line("constexpr u32 len = 4u * kRowLanes;");
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
