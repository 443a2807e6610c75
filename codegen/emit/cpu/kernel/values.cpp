// CpuValues: shorter forms for values of which more is known.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "codegen/emit/cpu/kernel/instrs.h"
#include "runtime/core/check.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::codegen {
using kir::ComputeType;
using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

void CpuValues::emit_element_wise(const Instr& instr) {
  if (emit_bounded(instr) || emit_plain_bits(instr) || emit_known_convert(instr) ||
      emit_narrow_comparison(instr) || emit_high_product(instr) || emit_shared_division(instr) ||
      emit_steps(instr) || emit_code(instr)) {
    return;
  }
  if (const char* function = facts().short_form(instr)) {
    return define(instr.results[0], "lang::{}({})", function,
                  operand(facts().short_operand(instr)));
  }
  define(instr.results[0], element_wise(
                               instr, [&](ValueId value) { return type(value); },
                               [&](ValueId value) { return operand(value); }));
}

// A C++ function takes scalars, so the lanes call it one after the other.
void CpuValues::emit_call_extern(const Instr& instr) {
  const ValueId result = instr.results[0];
  std::vector<std::string> operands;
  operands.reserve(instr.operands.size());
  for (const ValueId value : instr.operands) {
    operands.push_back(is_lanes() && (facts().is_element(value) && !facts().is_constant(value))
                           ? fmt::format("lane_of<{}>({}, l)", c_type(type(value)), name(value))
                           : uniform(value));
  }
  const std::string call = extern_call(facts().program().info, instr.index, operands);
  if (!is_lanes()) return define(result, call);
  const char* element = c_type(type(result));
  line("Lanes<{}> {} = wide<{}>({}(0));", element, name(result), element, element);
  line("for (int l = 0; l < W; ++l) set_lane<{}>({}, l, {});", element, name(result), call);
}

void CpuValues::emit_leaf(const Instr& instr) {
  const ValueId result = instr.results[0];
  const ComputeType t = type(result);
  const auto word = [&](const char* table) -> std::string {
    const std::string text = fmt::format("args->{}[{}]", table, instr.index);
    if (t == ComputeType::F32) return fmt::format("f32_of_word({})", text);
    if (t == ComputeType::F64) return fmt::format("f64_of_word({})", text);
    return fmt::format("{}({})", c_type(t), text);
  };
  switch (instr.kind) {
    case InstrKind::constant:
      return;
    case InstrKind::param:
      return define(result, word("params"));
    case InstrKind::host_size:
      return define(result, word("sizes"));
    case InstrKind::group:
      return define(result, "i64(group)");
    case InstrKind::group_len:
      return define(result, "i64(len)");
    case InstrKind::column:
      return define(result, "lane_numbers() + wide(j)");
    case InstrKind::element:
      return define(result, "lane_numbers() + wide(u32(group * {}) + j)",
                    kernel().group_kind == kir::GroupKind::Tile ? "kTile" : "len");
    default:
      CINCH_BUG("not a leaf");
  }
}

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
  define(instr.results[0], "lang::convert<{}>({})", c_type(to), whole);
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
  define(instr.results[0], "{}is_below({}, {})", is_below ? "" : "~", lanes(x), uniform(bound));
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
    define(instr.results[0], "high_product({}, {})", lanes(x), uniform(factor));
    return true;
  }
  return false;
}

ValueId CpuValues::shared_divisor(const Instr& instr) const {
  const bool divides = instr.kind == InstrKind::scalar && instr.dtype == kU32 &&
                       (instr.scalar_op == ScalarOp::div || instr.scalar_op == ScalarOp::mod);
  if (!divides || facts().level(instr.operands[1]) != Level::Kernel) return {};
  return facts().is_element(instr.operands[0]) ? instr.operands[1] : ValueId();
}

void CpuValues::need_divider(const Instr& instr) {
  const ValueId divisor = shared_divisor(instr);
  if (!divisor || !dividers_done_.insert(divisor.index()).second) return;
  line("const Divider by_{} = Divider::of({});", name(divisor), uniform(divisor));
}

bool CpuValues::emit_shared_division(const Instr& instr) {
  const ValueId divisor = shared_divisor(instr);
  if (cx().level != Level::Element || !divisor) return false;
  const bool is_rest = instr.scalar_op == ScalarOp::mod;
  define(instr.results[0], "by_{}.{}({})", name(divisor), is_rest ? "rest" : "quotient",
         lanes(instr.operands[0]));
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

// CpuValues: values that depend on one other value only, and take few different values. A look-up
// takes fewer instructions than computing them.

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

// Evaluates element-wise instructions and constants, if one value, the variable, is `at`. Values
// are encoded elements (runtime/core/numbers/scalar_eval.h) of their compute type.
class CpuEvaluator {
 public:
  CpuEvaluator(const CpuKernelFacts& facts, kir::ValueId variable, std::uint64_t at)
      : facts_(facts), known_{{variable.index(), at}} {}
  // None if the value depends on something else.
  std::optional<std::uint64_t> of(ValueId value) {
    if (const auto at = known_.find(value.index()); at != known_.end()) return at->second;
    const Instr* made = facts_.definition(value);
    const auto found = made == nullptr ? std::nullopt : find(*made);
    known_.emplace(value.index(), found);
    return found;
  }

 private:
  std::optional<std::uint64_t> find(const Instr& made) {
    const DType own = kir::dtype_of(facts_.type(made.results[0]));
    if (made.kind == InstrKind::constant) return encode_bits(own, made.bits);
    if (made.kind != InstrKind::scalar && made.kind != InstrKind::convert) return std::nullopt;
    std::vector<std::uint64_t> operands;
    for (const ValueId operand : made.operands) {
      const auto found = of(operand);
      if (!found) return std::nullopt;
      operands.push_back(*found);
    }
    if (made.kind == InstrKind::scalar) {
      // Integers that are no truth values wrap to their declared width.
      const kir::ComputeType computed = facts_.type(made.operands.back());
      const bool has_width = kir::is_integer(computed) && own != kBool;
      return evaluate_scalar(made.scalar_op, has_width ? made.dtype : kir::dtype_of(computed),
                             operands);
    }
    const DType from = made.from_dtype, to = made.dtype;
    // Narrow floats are computed with as f32.
    if (is_narrow_float(from) || is_narrow_float(to)) return std::nullopt;
    return convert_element(from, to, operands[0]);
  }

  const CpuKernelFacts& facts_;
  std::map<std::uint32_t, std::optional<std::uint64_t>> known_;  // by value
};

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
