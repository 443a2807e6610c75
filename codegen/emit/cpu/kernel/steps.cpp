// CpuValues: values that depend on one other value only, and take few different values. A look-up
// takes fewer instructions than computing them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "codegen/emit/cpu/kernel/evaluate.h"
#include "codegen/emit/cpu/kernel/values.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::codegen {

using kir::ComputeType;
using kir::InstrKind;

namespace {

constexpr std::size_t kMostEnds = 7;
constexpr std::size_t kFewestEnds = 4;  // selecting among fewer is as fast
constexpr std::size_t kMostCodes = 16;
constexpr std::size_t kFewestReplaced = 10;  // computing takes as long as a look-up

// A look-up moves floats. Integers are their bits, as long as these are no NaN.
bool is_looked_up(ComputeType type) {
  return type == ComputeType::F32 || type == ComputeType::I32 || type == ComputeType::U32;
}

std::string looked_up(const std::string& floats, ComputeType type) {
  if (type == ComputeType::F32) return floats;
  const std::string bits = fmt::format("lang::bits_of({})", floats);
  return type == ComputeType::U32 ? bits : fmt::format("lang::as_signed({})", bits);
}

}  // namespace

// The values at some elements of the variable, as floats with their bits. Empty if one is unknown.
std::string CpuValues::value_literals(ValueId value, ValueId variable,
                                      const std::vector<std::uint64_t>& elements) const {
  std::string literals;
  for (const std::uint64_t element : elements) {
    const auto found = CpuEvaluator(facts(), variable, element).of(value);
    if (!found) return {};
    const auto bits = static_cast<std::uint32_t>(*found);
    if (std::isnan(std::bit_cast<float>(bits))) return {};
    literals += (literals.empty() ? "" : ", ") + literal(ComputeType::F32, bits);
  }
  return literals;
}

// ---- steps: of comparisons of one float with constants ----

// `x > constant`, in either order, or null.
const kir::Instr* CpuValues::find_end(ValueId value, ValueId& x, float& end) const {
  for (const bool is_gt : {true, false}) {
    const Instr* above = facts().scalar_of(value, is_gt ? ScalarOp::gt : ScalarOp::lt);
    if (!above) continue;
    x = above->operands[is_gt ? 0 : 1];
    const ValueId bound = above->operands[is_gt ? 1 : 0];
    if (type(x) != ComputeType::F32 || !facts().is_element(x) || facts().is_constant(x)) continue;
    if (!facts().is_constant(bound)) continue;
    end = std::bit_cast<float>(static_cast<std::uint32_t>(facts().definition(bound)->bits));
    return above;
  }
  return nullptr;
}

// Notes the ends below the value. Returns false if something else decides.
bool CpuValues::note_ends(ValueId value, Steps& steps) const {
  if (facts().is_constant(value) || !steps.seen.insert(value.index()).second) return true;
  ValueId x;
  float end = 0;
  if (find_end(value, x, end)) {
    if (!steps.of) steps.of = x;
    if (steps.of != x || end != end) return false;
    if (std::ranges::find(steps.ends, end) == steps.ends.end()) steps.ends.push_back(end);
    return steps.ends.size() <= kMostEnds;
  }
  const Instr* made = facts().definition(value);
  const bool is_computed = made && facts().is_element(value) &&
                           (made->kind == InstrKind::scalar || made->kind == InstrKind::convert);
  return is_computed && std::ranges::all_of(made->operands, [&](ValueId operand) {
           return note_ends(operand, steps);
         });
}

std::optional<CpuValues::Steps> CpuValues::find_steps(ValueId value) const {
  Steps steps;
  if (!is_looked_up(type(value)) || !note_ends(value, steps)) return std::nullopt;
  if (steps.ends.size() < kFewestEnds) return std::nullopt;
  return steps;
}

// Do others of the section use the value that are not looked up like it?
bool CpuValues::is_used_otherwise(ValueId value,
                                  const std::function<bool(ValueId)>& is_looked_up_too) const {
  const auto& instrs = kernel().sections[cx().section].instrs;
  return std::ranges::any_of(instrs, [&](const Instr& instr) {
    const bool uses = std::ranges::find(instr.operands, value) != instr.operands.end();
    return uses && (instr.results.size() != 1 || !is_looked_up_too(instr.results[0]));
  });
}

bool CpuValues::emit_steps(const Instr& instr) {
  const ValueId value = instr.results[0];
  if (cx().level != Level::Element) return false;
  std::optional<Steps> steps = find_steps(value);
  if (!steps || !is_used_otherwise(value, [&](ValueId user) {
        const std::optional<Steps> others = find_steps(user);
        return others && others->of == steps->of;
      }))
    return false;
  std::ranges::sort(steps->ends);
  // An element on each step: the first end is not above itself.
  std::vector<std::uint64_t> elements = {element_of_f32(steps->ends[0])};
  std::string ends = "0";
  for (std::size_t k = 0; k < kMostEnds; ++k) {
    const bool is_there = k < steps->ends.size();
    const float end = is_there ? steps->ends[k] : INFINITY;
    elements.push_back(is_there ? element_of_f32(std::nextafter(end, INFINITY)) : elements.back());
    ends += ", " + literal(ComputeType::F32, std::bit_cast<std::uint32_t>(end));
  }
  const std::string values = value_literals(value, steps->of, elements);
  if (values.empty()) return false;
  define(value, looked_up(fmt::format("step_value({}, {{{{{}}}}}, {{{{{}}}}})", lanes(steps->of),
                                      ends, values),
                          type(value)));
  return true;
}

// ---- codes: of one loaded integer of at most four bits ----

bool CpuValues::note_code(ValueId value, Code& code) const {
  if (facts().is_constant(value) || !code.seen.insert(value.index()).second) return true;
  const Instr* made = facts().definition(value);
  if (!made || !facts().is_element(value)) return false;
  if (made->kind == InstrKind::load_linear) {
    const bool is_short = kir::is_integer(type(value)) && type(value) != ComputeType::I64 &&
                          type(value) != ComputeType::U64 &&
                          facts().range(value).is_within(0, kMostCodes - 1);
    if (!code.of) code.of = value;
    return is_short && code.of == value;
  }
  if (made->kind != InstrKind::scalar && made->kind != InstrKind::convert) return false;
  ++code.num_instrs;
  return std::ranges::all_of(made->operands,
                             [&](ValueId operand) { return note_code(operand, code); });
}

bool CpuValues::emit_code(const Instr& instr) {
  const ValueId value = instr.results[0];
  const auto find_code = [&](ValueId v) -> std::optional<Code> {
    Code code;
    const bool is_one = is_looked_up(type(v)) && note_code(v, code) && code.of;
    return is_one ? std::optional(code) : std::nullopt;
  };
  if (cx().level != Level::Element) return false;
  const std::optional<Code> code = find_code(value);
  if (!code || code->num_instrs < kFewestReplaced) return false;
  if (!is_used_otherwise(value, [&](ValueId user) { return find_code(user).has_value(); }))
    return false;
  std::vector<std::uint64_t> codes(kMostCodes);
  std::iota(codes.begin(), codes.end(), 0);
  const std::string values = value_literals(value, code->of, codes);
  if (values.empty()) return false;
  const std::string index = fmt::format("lang::convert<u32>({})", lanes(code->of));
  define(value,
         looked_up(fmt::format("pick_of_sixteen({{{{{}}}}}, {})", values, index), type(value)));
  return true;
}

}  // namespace cinch::codegen
