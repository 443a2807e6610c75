// How the groups of a kernel touch the gradient and the output; see rt::KernelInfo::tiled.
#include <algorithm>
#include <optional>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/cost.h"

namespace cinch::kir {

namespace {

enum class Use : std::uint8_t { None, Tiled, Other };

class TileUse {
 public:
  TileUse(const KernelProgram& program, const Kernel& kernel)
      : program_(program), kernel_(kernel) {}

  // The elements of a group, if constant and few.
  std::optional<std::uint32_t> group_elems() const {
    if (kernel_.group_kind == GroupKind::Single) return std::nullopt;
    const HostExprPool& exprs = program_.info.exprs;
    if (!exprs.is_const(kernel_.group_len)) return std::nullopt;
    const std::int64_t len = exprs.const_value(kernel_.group_len).as_int();
    const bool is_small = len >= 1 && len <= rt::kMostTiledElems / kernel_.info.group_multiple;
    return is_small ? std::optional(static_cast<std::uint32_t>(len)) : std::nullopt;
  }

  Use of(BufferIndex buffer) const {
    Use use = Use::None;
    for (const Section& section : kernel_.sections) {
      for (const Instr& instr : section.instrs) {
        if (std::ranges::find(instr.buffers, buffer) == instr.buffers.end()) continue;
        if (!is_own(instr, buffer)) return Use::Other;
        use = Use::Tiled;
      }
    }
    return use;
  }

 private:
  // A load or a store of the group's own elements. The output's must all be written.
  bool is_own(const Instr& instr, BufferIndex buffer) const {
    const bool is_output = program_.buffers[buffer].role == rt::BufferRole::Output;
    if (instr.kind != (is_output ? InstrKind::store_linear : InstrKind::load_linear)) return false;
    if (!is_group_base(optional_operand(instr, is_output ? 1 : 0))) return false;
    return !is_output || (!optional_operand(instr, 2) && !kernel_.extent_value);
  }

  // group * group_len.
  bool is_group_base(ValueId value) const {
    const Instr* base = value ? definition(value) : nullptr;
    if (base == nullptr || base->kind != InstrKind::scalar || base->scalar_op != ScalarOp::mul)
      return false;
    const Instr* group = definition(base->operands[0]);
    const Instr* len = definition(base->operands[1]);
    return group != nullptr && group->kind == InstrKind::group && len != nullptr &&
           len->kind == InstrKind::constant &&
           std::optional(static_cast<std::uint32_t>(len->bits)) == group_elems();
  }

  const Instr* definition(ValueId value) const {
    for (const Section& section : kernel_.sections) {
      for (const Instr& instr : section.instrs) {
        if (std::ranges::find(instr.results, value) != instr.results.end()) return &instr;
      }
    }
    return nullptr;
  }

  const KernelProgram& program_;
  const Kernel& kernel_;
};

}  // namespace

void note_tile_use(const KernelProgram& program, Kernel& kernel) {
  const TileUse found(program, kernel);
  const auto group_elems = found.group_elems();
  rt::KernelInfo& info = kernel.info;
  info.group_elems = rt::kNoIndex;
  info.tiled.clear();
  info.untouched.clear();
  for (BufferIndex b = 0; b < program.buffers.size(); ++b) {
    const rt::BufferRole role = program.buffers[b].role;
    if (role != rt::BufferRole::Gradient && role != rt::BufferRole::Output) continue;
    const Use use = found.of(b);
    if (use == Use::None) info.untouched.push_back(b);
    if (use == Use::Tiled && group_elems) {
      info.tiled.push_back(b);
      info.group_elems = *group_elems;
    }
  }
}

}  // namespace cinch::kir
