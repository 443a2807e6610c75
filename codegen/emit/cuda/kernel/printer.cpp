#include "codegen/emit/cuda/kernel/printer.h"

#include <fmt/format.h>

#include "codegen/emit/cuda/places.h"

namespace cinch::codegen {

using kir::InstrKind;

std::string CudaPrinter::operand(ValueId value) const {
  return facts().is_element(value) ? name(value) + "[c]" : name(value);
}

std::string CudaPrinter::quad(ValueId value) {
  if (facts().is_element(value)) return name(value);
  const std::string made = fmt::format("same{}", cx().num_quads++);
  line(fmt::format("{} {}[4];", c_type(type(value)), made));
  line(fmt::format("CINCH_EACH {}[c] = {};", made, name(value)));
  return made;
}

// " && p" for the optional predicate at `index`.
std::string CudaPrinter::pred_text(const Instr& instr, std::size_t index) const {
  if (index >= instr.operands.size() || !instr.operands[index]) return {};
  return " && " + operand(instr.operands[index]);
}

std::string CudaPrinter::acting(const Instr& instr, std::size_t pred_index) const {
  return "c < live" + pred_text(instr, pred_index);
}

void CudaPrinter::define_quad(ValueId value) {
  line(fmt::format("{} {}[4];", c_type(type(value)), name(value)));
}

void CudaPrinter::define(const Instr& instr, const std::string& text) {
  const ValueId value = instr.results[0];
  if (cx().level == Level::Element) {
    define_quad(value);
    if (cx().is_whole && instr.is_alike) {
      line("{");
      line("constexpr u32 c = 0;");
      line(fmt::format("fill_columns({}, {}({}));", name(value), c_type(type(value)), text));
      return line("}");
    }
    line(fmt::format("CINCH_EACH {}[c] = {};", name(value), text));
  } else {
    // Only numbers are const. NVRTC tries to evaluate the initializer of a const integer, and all
    // that it depends on, at each use. So a chain of const integers would take exponential time.
    const std::string_view held = instr.kind == InstrKind::constant ? "const " : "";
    line(fmt::format("{}{} {} = {};", held, c_type(type(value)), name(value), text));
  }
}

// ---- memory ----

std::string CudaPrinter::storage(rt::BufferIndex buffer) const {
  const rt::BufferInfo& info = program().buffers[buffer];
  return stored_type(info.dtype, info.storage_bits);
}

std::string CudaPrinter::buffer_name(rt::BufferIndex buffer) const {
  return fmt::format("b{}", cx().places.number(buffer));
}

std::string CudaPrinter::base_text(ValueId base) const {
  return base ? name(base) + " + " : std::string();
}

std::string CudaPrinter::limited_live(ValueId limit) const {
  return limit && !cx().is_whole ? fmt::format("live_elems(live, j, {})", name(limit)) : "live";
}

std::string CudaPrinter::lane_place(ValueId base) const {
  return base_text(base) + (cx().is_whole ? "lane_begin, turn" : "i64(j), 0u");
}

std::string CudaPrinter::row_place(ValueId base) const {
  return base_text(base) +
         (cx().is_whole ? "rows_begin, turn" : "i64(tile_begin + row * kRowElems), 0u");
}

std::string CudaPrinter::share(const std::string& type, const std::string& name,
                               const std::string& extents) {
  cx().shared_members.push_back(type + " " + name + extents);
  return "shared." + name;
}

std::string CudaPrinter::team_type() const {
  return shape().team_warps > 1 ? "Team<kBlockWarps>" : "Team<1u>";
}

}  // namespace cinch::codegen
