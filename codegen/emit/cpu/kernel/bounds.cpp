// CpuValues: min, max and clamp of float elements by a bound that is the same for all of them, or
// that is neither NaN nor a zero. In general NaN and signed zeros cost several instructions;
// against such a bound one or two are enough.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "codegen/emit/cpu/kernel/values.h"
#include "codegen/kir/compute_type.h"

namespace cinch::codegen {

namespace {

double constant_of(const kir::Instr& definition, kir::ComputeType type) {
  return type == kir::ComputeType::F32
             ? std::bit_cast<float>(static_cast<std::uint32_t>(definition.bits))
             : std::bit_cast<double>(definition.bits);
}

}  // namespace

// The smaller (`is_least`) or larger one of text x and the bound.
std::string CpuValues::bounded_text(const std::string& x, ValueId bound, bool is_least) {
  const char* name = is_least ? "min" : "max";
  if (facts().is_constant(bound)) {
    const double value = constant_of(*facts().definition(bound), type(bound));
    // The prelude's comments at float_min_with and float_max_with say which bounds they take.
    const bool is_plain = value == 0 ? std::signbit(value) == is_least : !std::isnan(value);
    if (is_plain) return fmt::format("lang::float_{}_with({}, {})", name, x, lanes(bound));
  } else if (!facts().is_element(bound)) {
    return fmt::format("bounded_{}(whole, {}, {})", name, x, uniform(bound));
  } else if (facts().is_plain_bound(bound)) {
    return fmt::format("lang::float_{}_with({}, {})", name, x, lanes(bound));
  }
  return fmt::format("lang::{}({}, {})", name, x, lanes(bound));
}

bool CpuValues::emit_bounded(const Instr& instr) {
  if (cx().level != Level::Element || instr.kind != kir::InstrKind::scalar) return false;
  if (!kir::is_float(type(instr.results[0]))) return false;
  const auto& x = instr.operands;
  switch (instr.scalar_op) {
    case ScalarOp::min:
    case ScalarOp::max: {
      const auto is_element_of_many = [&](ValueId v) {
        return facts().is_element(v) && !facts().is_constant(v);
      };
      const bool are_elements = is_element_of_many(x[0]) && is_element_of_many(x[1]);
      const std::size_t bound = are_elements ? (facts().is_plain_bound(x[0]) ? 0 : 1)
                                             : (is_element_of_many(x[1]) ? 0 : 1);
      define(instr.results[0],
             bounded_text(lanes(x[1 - bound]), x[bound], instr.scalar_op == ScalarOp::min));
      return true;
    }
    case ScalarOp::clamp:
      define(instr.results[0], bounded_text(bounded_text(lanes(x[0]), x[1], false), x[2], true));
      return true;
    default:
      return false;
  }
}

}  // namespace cinch::codegen
