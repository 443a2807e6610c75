// CpuValues: shorter forms for values of which more is known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/emit/cpu/kernel/values.h"
#include "codegen/kir/compute_type.h"

namespace cinch::codegen {

using kir::InstrKind;

// Converts to integers without saturating or wrapping.
bool CpuValues::emit_known_convert(const Instr& instr) {
  if (cx().level != Level::Element || instr.kind != InstrKind::convert) return false;
  const ValueId x = instr.operands[0];
  const kir::ComputeType from = type(x), to = type(instr.results[0]);
  if (!is_int(instr.dtype) || from == kir::ComputeType::Bool) return false;
  const int magnitude_bits = instr.dtype.bits - (is_signed_int(instr.dtype) ? 1 : 0);
  constexpr int kMostBits = 30;  // lanes are converted to signed integers of 32 bits
  const double top = std::ldexp(1.0, std::min(magnitude_bits, kMostBits)) - 1;
  const double low = is_signed_int(instr.dtype) ? -top - 1 : 0;
  if (!facts().range(x).is_within(low, top)) return false;
  const std::string whole =
      kir::is_float(from) ? fmt::format("lang::convert<i32>({})", operand(x)) : operand(x);
  define(instr.results[0], fmt::format("lang::convert<{}>({})", c_type(to), whole));
  return true;
}

bool CpuValues::emit_plain_bits(const Instr& instr) {
  if (cx().level != Level::Element || instr.kind != InstrKind::bitcast) return false;
  if (instr.from_dtype != kF32 || instr.dtype != kU32) return false;
  const ValueId x = instr.operands[0];
  const Instr* sign_change = facts().scalar_of(x, ScalarOp::abs);
  if (!sign_change) sign_change = facts().scalar_of(x, ScalarOp::neg);
  if (!facts().is_flagged(sign_change ? sign_change->operands[0] : x, cx().section)) return false;
  define(instr.results[0], "lang::bits_of(" + operand(x) + ")");
  return true;
}

}  // namespace cinch::codegen
