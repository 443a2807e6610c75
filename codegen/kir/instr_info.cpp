// Table behind instr_info.h.
#include "codegen/kir/instr_info.h"

#include <array>

namespace cinch::kir {
namespace {
constexpr std::array<InstrInfo, kNumInstrKinds> kInfos = {{
#define INSTR(name, levels, meaning) {#name, levels, meaning},
#include "codegen/kir/instrs.def"
}};
}  // namespace

bool InstrInfo::allowed_at(SectionKind level) const {
  const char letter = level == SectionKind::Kernel ? 'K' : level == SectionKind::Group ? 'G' : 'E';
  return levels.find(letter) != std::string_view::npos;
}

const InstrInfo& instr_info(InstrKind kind) {
  return kInfos[static_cast<std::size_t>(kind)];
}

std::optional<InstrKind> find_instr(std::string_view name) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<InstrKind>(i);
  }
  return std::nullopt;
}

const char* section_name(SectionKind kind) {
  switch (kind) {
    case SectionKind::Kernel:
      return "kernel";
    case SectionKind::Group:
      return "group";
    case SectionKind::Elements:
      return "elements";
  }
  return "?";
}

bool is_computed(InstrKind kind) {
  switch (kind) {
    case InstrKind::constant:
    case InstrKind::column:
    case InstrKind::element:
    case InstrKind::scalar:
    case InstrKind::convert:
    case InstrKind::bitcast:
    case InstrKind::call_extern:
      return true;
    default:
      return false;
  }
}

const char* group_kind_name(GroupKind kind) {
  switch (kind) {
    case GroupKind::Tile:
      return "tile";
    case GroupKind::Row:
      return "row";
    case GroupKind::Single:
      return "single";
  }
  return "?";
}

}  // namespace cinch::kir
