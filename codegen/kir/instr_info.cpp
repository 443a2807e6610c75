#include "codegen/kir/instr_info.h"

#include <array>

namespace cinch::kir {
namespace {
constexpr std::array<InstrInfo, kNumInstrKinds> kInfos = {{
#define INSTR(name, levels, family, meaning) {#name, levels, InstrFamily::family, meaning},
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
  const InstrFamily family = family_of(kind);
  return family == InstrFamily::Leaf || family == InstrFamily::ElementWise ||
         family == InstrFamily::Call;
}

namespace {

// Optional operands follow these: bases of linear accesses, and predicates of other accesses.
std::size_t num_required(const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::load_linear:
      return 0;
    case InstrKind::load_at:
    case InstrKind::store_linear:
    case InstrKind::hist_add:
      return 1;
    default:
      return 2;
  }
}

}  // namespace

ValueId base_of(const Instr& instr) {
  return is_linear(instr.kind) ? optional_operand(instr, num_required(instr)) : ValueId();
}

ValueId limit_of(const Instr& instr) {
  return is_linear(instr.kind) ? optional_operand(instr, num_required(instr) + 1) : ValueId();
}

ValueId predicate_of(const Instr& instr) {
  const InstrFamily family = family_of(instr.kind);
  const bool is_access =
      family == InstrFamily::Load || family == InstrFamily::Store || family == InstrFamily::Update;
  return is_access && !is_linear(instr.kind) ? optional_operand(instr, num_required(instr))
                                             : ValueId();
}

}  // namespace cinch::kir
