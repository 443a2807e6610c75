// Facts about the kernel IR's instructions, from instrs.def: name, levels, family, meaning. Also
// the places of their optional operands.
#pragma once
#include <optional>
#include <string_view>

#include "codegen/kir/kir.h"

namespace cinch::kir {

/// Instructions of a family are alike for passes and emitters.
enum class InstrFamily : std::uint8_t {
  Given,        // known before the elements: parameters, sizes, the group
  Leaf,         // constants, an element's place
  ElementWise,  // of operands at the same element
  Call,         // of a C++ function, likewise
  Load,
  Store,
  Update,  // of what a buffer holds
  Reduction,
  LookBack,
  Local,       // an element of a local array
  LocalWhole,  // a whole local array, in place
  Finish,      // stored partials
  Sort,
  Draw,
  Status,
};

struct InstrInfo {
  std::string_view name;
  std::string_view levels;  // a mix of K, G and E
  InstrFamily family;
  std::string_view meaning;
  bool allowed_at(SectionKind level) const;
};

inline constexpr std::size_t kNumInstrKinds = 0
#define INSTR(name, levels, family, meaning) +1
#include "codegen/kir/instrs.def"
    ;

/// Total over the enum.
const InstrInfo& instr_info(InstrKind kind);
std::optional<InstrKind> find_instr(std::string_view name);
inline InstrFamily family_of(InstrKind kind) {
  return instr_info(kind).family;
}
inline bool is_load(InstrKind kind) {
  return family_of(kind) == InstrFamily::Load;
}
inline bool is_element_wise(InstrKind kind) {
  return family_of(kind) == InstrFamily::ElementWise;
}
inline bool is_draw(InstrKind kind) {
  return family_of(kind) == InstrFamily::Draw;
}
/// Does the instruction load or store neighbouring elements?
inline bool is_linear(InstrKind kind) {
  return kind == InstrKind::load_linear || kind == InstrKind::store_linear;
}
/// Of a linear access. Invalid if it has none, and for other instructions.
ValueId base_of(const Instr& instr);
ValueId limit_of(const Instr& instr);
/// Of an access at an index. Invalid if it has none, and for other instructions.
ValueId predicate_of(const Instr& instr);
/// Does an element's value depend on its operands, its place and constants alone? It must not
/// depend on memory, draws or other elements.
bool is_computed(InstrKind kind);
/// "kernel", "group", "elements".
const char* section_name(SectionKind kind);

}  // namespace cinch::kir
