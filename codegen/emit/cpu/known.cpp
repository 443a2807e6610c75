// CpuKernelEmitter: what is known of values, and the shorter forms that it allows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/emit/cpu/kernel.h"
#include "codegen/kir/builder.h"

namespace cinch::codegen {

using kir::InstrKind;

namespace {
bool is_scalar(const kir::Instr* instr, ScalarOp op) {
  return instr && instr->kind == InstrKind::scalar && instr->scalar_op == op;
}
}  // namespace

// Does this section flag the elements where the value is not finite? What a call computes from them
// is then used by nobody.
bool CpuKernelEmitter::is_flagged(ValueId value) const {
  const auto& instrs = kernel_.sections[section_].instrs;
  return std::any_of(instrs.begin(), instrs.end(), [&](const Instr& instr) {
    return instr.kind == InstrKind::flag_nonfinite && instr.operands[0] == value;
  });
}

bool CpuKernelEmitter::is_magnitude(ValueId value) const {
  return kir::is_float(type(value)) && is_scalar(definitions_[value.index()], ScalarOp::abs);
}

// Conversions to integers that need not saturate or wrap.
bool CpuKernelEmitter::emit_known_convert(const Instr& instr) {
  if (level_ != Level::Element || instr.kind != InstrKind::convert) return false;
  const ValueId x = instr.operands[0];
  const kir::ComputeType from = type(x), to = type(instr.results[0]);
  if (!is_int(instr.dtype) || from == kir::ComputeType::Bool) return false;
  const int magnitude_bits = instr.dtype.bits - (is_signed_int(instr.dtype) ? 1 : 0);
  constexpr int kMostBits = 30;  // the conversion of lanes is one to signed integers of 32 bits
  const double top = std::ldexp(1.0, std::min(magnitude_bits, kMostBits)) - 1;
  const double low = is_signed_int(instr.dtype) ? -top - 1 : 0;
  if (!ranges_.of(x).is_within(low, top)) return false;
  const std::string whole =
      kir::is_float(from) ? fmt::format("lang::convert<i32>({})", operand(x)) : operand(x);
  define(instr.results[0], fmt::format("lang::convert<{}>({})", c_type(to), whole));
  return true;
}

bool CpuKernelEmitter::emit_plain_bits(const Instr& instr) {
  if (level_ != Level::Element || instr.kind != InstrKind::bitcast) return false;
  if (instr.from_dtype != kF32 || instr.dtype != kU32) return false;
  const ValueId x = instr.operands[0];
  const Instr* sign_change = definitions_[x.index()];
  const bool changes_sign =
      is_scalar(sign_change, ScalarOp::abs) || is_scalar(sign_change, ScalarOp::neg);
  if (!is_flagged(changes_sign ? sign_change->operands[0] : x)) return false;
  define(instr.results[0], "lang::bits_of(" + operand(x) + ")");
  return true;
}

}  // namespace cinch::codegen
