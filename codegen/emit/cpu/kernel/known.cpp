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

// The u32 that became the value of 64 bits, or none.
kir::ValueId CpuValues::narrow_form(ValueId wide) const {
  const Instr* made = facts().definition(wide);
  const bool is_widened = made && made->kind == InstrKind::convert &&
                          (made->dtype == kI64 || made->dtype == kU64) &&
                          type(made->operands[0]) == kir::ComputeType::U32;
  return is_widened && facts().is_element(made->operands[0]) ? made->operands[0] : ValueId();
}

// Compares a u32 with a bound of 64 bits as integers of 32 bits.
bool CpuValues::emit_narrow_comparison(const Instr& instr) {
  if (cx().level != Level::Element || instr.kind != InstrKind::scalar) return false;
  const bool is_below = instr.scalar_op == ScalarOp::lt;
  if (!is_below && instr.scalar_op != ScalarOp::ge) return false;
  const ValueId bound = instr.operands[1];
  if (type(bound) != kir::ComputeType::I64) return false;
  if (facts().is_element(bound) && !facts().is_constant(bound)) return false;
  const ValueId x = narrow_form(instr.operands[0]);
  if (!x) return false;
  define(instr.results[0],
         fmt::format("{}is_below({}, {})", is_below ? "" : "~", lanes(x), uniform(bound)));
  return true;
}

// The high half of a product of a u32 with a number that all elements share.
bool CpuValues::emit_high_product(const Instr& instr) {
  if (cx().level != Level::Element || instr.kind != InstrKind::convert) return false;
  if (instr.dtype != kU32 || type(instr.operands[0]) != kir::ComputeType::U64) return false;
  const Instr* half = facts().scalar_of(instr.operands[0], ScalarOp::shr);
  if (!half || !facts().is_constant(half->operands[1])) return false;
  const Instr* product = facts().scalar_of(half->operands[0], ScalarOp::mul);
  constexpr std::uint64_t kHalfBits = 32;
  if (!product || facts().definition(half->operands[1])->bits != kHalfBits) return false;
  for (const std::size_t side : {0u, 1u}) {
    const ValueId x = narrow_form(product->operands[side]), factor = product->operands[1 - side];
    if (!x || (facts().is_element(factor) && !facts().is_constant(factor))) continue;
    define(instr.results[0], fmt::format("high_product({}, {})", lanes(x), uniform(factor)));
    return true;
  }
  return false;
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
