// Facts of the kernel IR's instructions, from instrs.def: name, levels, meaning, numbers of
// operands.
#pragma once
#include <optional>
#include <string_view>

#include "codegen/kir/kir.h"

namespace cinch::kir {

struct InstrInfo {
  std::string_view name;
  std::string_view levels;  // a mix of K, G and E
  std::string_view meaning;
  bool allowed_at(SectionKind level) const;
};

inline constexpr std::size_t kNumInstrKinds = 0
#define INSTR(name, levels, meaning) +1
#include "codegen/kir/instrs.def"
    ;

/// Total over the enum.
const InstrInfo& instr_info(InstrKind kind);
std::optional<InstrKind> find_instr(std::string_view name);
/// Is an element's value made of nothing but its operands, its place and constants: no memory, no
/// draw, no other element?
bool is_computed(InstrKind kind);
/// "kernel", "group", "elements".
const char* section_name(SectionKind kind);
/// "tile", "row", "single".
const char* group_kind_name(GroupKind kind);

}  // namespace cinch::kir
