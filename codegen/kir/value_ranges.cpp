#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/value_ranges.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
// Integers below this are exact as doubles, and so are sums of two of them.
constexpr double kExact = 0x1p53;

NumberRange all_of(ComputeType type) {
  return all_numbers(dtype_of(type));
}

double number_of(std::uint64_t bits, ComputeType type) {
  switch (type) {
    case ComputeType::F32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case ComputeType::F64:
      return std::bit_cast<double>(bits);
    case ComputeType::U64:
      return static_cast<double>(bits);
    default:
      return static_cast<double>(static_cast<std::int64_t>(bits));
  }
}

bool is_exact(const NumberRange& x) {
  return std::max(std::abs(x.low), std::abs(x.high)) < kExact;
}

}  // namespace

NumberRange ValueRanges::of(ValueId value) {
  if (found_.empty()) found_.resize(kernel_.values.size());
  std::optional<NumberRange>& known = found_[value.index()];
  if (known) return *known;
  // If doubles cannot tell an end from its neighbours, the end does not bound results made of it.
  const ComputeType type = kernel_.values[value.index()].type;
  known = all_of(type);  // it may depend on itself through a local array
  NumberRange range = find(value);
  if (is_integer(type) && !is_exact(range)) range = all_of(type);
  known = range;
  return range;
}

NumberRange ValueRanges::find(ValueId value) {
  const ComputeType type = kernel_.values[value.index()].type;
  const Instr* instr = definitions_[value.index()];
  if (!instr) return all_of(type);
  switch (instr->kind) {
    case InstrKind::constant: {
      const double number = number_of(instr->bits, type);
      return std::isnan(number) ? all_of(type) : NumberRange{number, number};
    }
    case InstrKind::param:
      return of_param(instr->index, type);
    case InstrKind::scalar: {
      if (scalar_op_info(instr->scalar_op).result != ScalarResult::Same) return all_of(type);
      NumberRange operands[3];
      for (std::size_t i = 0; i < instr->operands.size(); ++i) operands[i] = of(instr->operands[i]);
      const bool is_narrow = is_integer(type) && is_int(instr->dtype);
      return range_of_scalar(instr->scalar_op, is_narrow ? instr->dtype : dtype_of(type), operands);
    }
    case InstrKind::convert:
      return range_of_convert(of(instr->operands[0]), instr->dtype);
    case InstrKind::load_linear:
    case InstrKind::load_at: {
      // A load that reads nothing returns 0, which every type has.
      const DType dtype = program_.buffers[instr->buffers[0]].dtype;
      return is_int(dtype) || is_bool(dtype) ? all_numbers(dtype) : all_of(type);
    }
    case InstrKind::local_load:
      return of_local(instr->index, type);
    case InstrKind::random:
      return {0, 1};
    case InstrKind::stochastic_round: {
      const NumberRange x = of(instr->operands[0]);
      const NumberRange rounded = {std::floor(x.low), std::ceil(x.high), x.may_be_nan};
      return rounds_to_int(*instr) ? range_of_convert(rounded, instr->dtype) : rounded;
    }
    default:
      return all_of(type);
  }
}

// Binding rejects parameters outside the declared range, and those that round to an excluded end.
NumberRange ValueRanges::of_param(std::uint32_t index, ComputeType type) const {
  const rt::ParamInfo& param = program_.info.params[index];
  if (param.dtype != kF32 || !param.range) return all_of(type);
  const auto end = [](const std::optional<double>& given, bool is_open, double beyond) {
    constexpr double kMost = std::numeric_limits<float>::max();
    const double value = given.value_or(beyond);
    return static_cast<float>(is_open ? std::clamp(value, -kMost, kMost) : value);
  };
  return {end(param.range->low, param.range->low_open, -kInf),
          end(param.range->high, param.range->high_open, kInf)};
}

// What kernels store there, unless something else changes local arrays.
NumberRange ValueRanges::of_local(std::uint32_t index, ComputeType type) {
  std::optional<NumberRange> stored;
  for (const Section& section : kernel_.sections) {
    for (const Instr& instr : section.instrs) {
      if (family_of(instr.kind) == InstrFamily::LocalWhole) return all_of(type);
      if (instr.kind != InstrKind::local_store || instr.index != index) continue;
      const NumberRange value = of(instr.operands[0]);
      stored = stored ? joined(*stored, value) : value;
    }
  }
  return stored.value_or(all_of(type));
}

// How the groups of a kernel touch the gradient and the output; see rt::KernelInfo::tiled.

namespace {

enum class Use : std::uint8_t { None, Tiled, Other };

class TileUse {
 public:
  TileUse(const KernelProgram& program, const Kernel& kernel)
      : program_(program), kernel_(kernel) {}

  // The elements of a group, if constant and few.
  std::optional<std::uint32_t> group_elems() const {
    if (kernel_.group_kind == GroupKind::Single) return std::nullopt;
    const HostExprPool& exprs = *program_.info.exprs;
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
