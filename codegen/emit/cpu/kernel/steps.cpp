// CpuValues: selects among constants by comparisons of one value with constants, which are steps. A
// look-up among eight steps takes fewer instructions.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/emit/cpu/kernel/values.h"

namespace cinch::codegen {

using kir::ComputeType;

namespace {

constexpr std::size_t kMostEnds = 7;
constexpr std::size_t kFewestEnds = 4;  // selecting among fewer is as fast

float float_of(const kir::Instr& constant) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(constant.bits));
}

}  // namespace

// Notes the ends below the value. Returns false if something else decides.
bool CpuValues::note_ends(ValueId value, Steps& steps) const {
  if (type(value) != ComputeType::F32) return false;
  if (facts().is_constant(value)) return true;
  const Instr* choice = facts().scalar_of(value, ScalarOp::select);
  const Instr* above = choice ? facts().scalar_of(choice->operands[0], ScalarOp::gt) : nullptr;
  if (!above || !facts().is_element(above->operands[0]) || !facts().is_constant(above->operands[1]))
    return false;
  if (type(above->operands[0]) != ComputeType::F32) return false;
  if (!steps.of) steps.of = above->operands[0];
  const float end = float_of(*facts().definition(above->operands[1]));
  if (steps.of != above->operands[0] || end != end) return false;
  if (std::ranges::find(steps.ends, end) == steps.ends.end()) steps.ends.push_back(end);
  return steps.ends.size() <= kMostEnds && note_ends(choice->operands[1], steps) &&
         note_ends(choice->operands[2], steps);
}

// The literal for values above `end` but not above the next end. Null: not above any end.
std::string CpuValues::step_literal(ValueId value, const float* end) const {
  while (!facts().is_constant(value)) {
    const Instr& choice = *facts().scalar_of(value, ScalarOp::select);
    const Instr& above = *facts().scalar_of(choice.operands[0], ScalarOp::gt);
    const bool holds = end != nullptr && *end >= float_of(*facts().definition(above.operands[1]));
    value = choice.operands[holds ? 1 : 2];
  }
  return uniform(value);
}

bool CpuValues::emit_steps(const Instr& instr) {
  if (cx().level != Level::Element || !facts().scalar_of(instr.results[0], ScalarOp::select))
    return false;
  Steps steps;
  if (!note_ends(instr.results[0], steps) || steps.ends.size() < kFewestEnds) return false;
  std::ranges::sort(steps.ends);
  std::string ends = "0", values = step_literal(instr.results[0], nullptr);
  for (std::size_t k = 0; k < kMostEnds; ++k) {
    const bool is_there = k < steps.ends.size();
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(is_there ? steps.ends[k] : INFINITY);
    ends += ", " + literal(ComputeType::F32, bits);
    values += ", " + step_literal(instr.results[0], is_there ? &steps.ends[k] : &steps.ends.back());
  }
  define(instr.results[0],
         fmt::format("step_value({}, {{{{{}}}}}, {{{{{}}}}})", lanes(steps.of), ends, values));
  return true;
}

}  // namespace cinch::codegen
