// Values that are computed once: bounds of min, max and clamp, and what a whole row shares.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/emit/cpu/kernel/instrs.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
// The smaller (`is_least`) or larger one of text x and the bound.
std::string CpuValues::bounded_text(const std::string& x, ValueId bound, bool is_least) {
  const char* name = is_least ? "min" : "max";
  if (facts().is_constant(bound)) {
    const std::uint64_t bits = facts().definition(bound)->bits;
    const double value = type(bound) == kir::ComputeType::F32
                             ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                             : std::bit_cast<double>(bits);
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

// Values that are computed once for a row.

using kir::Instr;
using kir::InstrKind;
using kir::SectionKind;
using kir::ValueId;

std::optional<RowRun> run_of_rows(const CpuKernelFacts& facts, const Instr& linear) {
  const ValueId base = base_of(linear), limit = limit_of(linear);
  RowRun run;
  if (!base || facts.level(base) == Level::Kernel) {
    if (limit) return std::nullopt;
    run.base = base;
    return run;
  }
  const Instr* first = facts.scalar_of(base, ScalarOp::mul);
  if (first == nullptr) return std::nullopt;
  const Instr* group = facts.definition(first->operands[0]);
  run.stride = first->operands[1];
  if (group == nullptr || group->kind != InstrKind::group ||
      facts.level(run.stride) != Level::Kernel) {
    return std::nullopt;
  }
  if (!limit) return run;
  const Instr* rest = facts.scalar_of(limit, ScalarOp::sub);
  if (rest == nullptr || rest->operands[1] != base) return std::nullopt;
  run.end = rest->operands[0];
  return facts.level(run.end) == Level::Kernel ? std::optional(run) : std::nullopt;
}

bool is_packed_run(const CpuKernelFacts& facts, const Instr& store, std::int64_t length) {
  if (facts.storage(store.buffers[0]).is_bit()) return false;
  const std::optional<RowRun> run = run_of_rows(facts, store);
  return run && run->stride && facts.is_constant(run->stride) &&
         static_cast<std::int64_t>(facts.definition(run->stride)->bits) == length;
}

namespace {

constexpr std::int64_t kLengths[] = {16, 32, 64};
constexpr std::size_t kFewestInstrs = 3;  // fewer save nothing

class Rows {
 public:
  explicit Rows(const CpuKernelFacts& facts)
      : facts_(facts), section_of_(facts.kernel().values.size(), 0) {}

  bool go_together() {
    if (facts_.kernel().group_kind != kir::GroupKind::Row || facts_.counts_accesses()) return false;
    const HostExprPool& pool = *facts_.program().info.exprs;
    const HostExprId length = facts_.kernel().group_len;
    if (!pool.is_const(length)) return false;
    length_ = pool.const_value(length).as_int();
    return std::ranges::find(kLengths, length_) != std::end(kLengths) && all_sections();
  }

 private:
  bool all_sections() {
    const auto& sections = facts_.kernel().sections;
    for (section_ = 1; section_ < sections.size(); ++section_) {
      is_behind_elements_ |= sections[section_].kind == SectionKind::Elements;
      for (const Instr& instr : sections[section_].instrs) {
        if (!allows(sections[section_].kind, instr)) return false;
        for (const ValueId result : instr.results) section_of_[result.index()] = section_;
      }
    }
    return num_for_rows_ >= kFewestInstrs;
  }

  bool allows(SectionKind kind, const Instr& instr) {
    if (kind == SectionKind::Elements) return allows_for_elements(instr);
    if (!is_behind_elements_) return instr.kind != InstrKind::look_back;
    ++num_for_rows_;
    if (std::ranges::any_of(instr.operands, [&](ValueId v) { return is_kept_truth(v); })) {
      return false;
    }
    if (instr.kind == InstrKind::store_at) {
      const Instr* index = facts_.definition(instr.operands[0]);
      return index != nullptr && index->kind == InstrKind::group &&
             !optional_operand(instr, 2).is_valid();
    }
    return kir::is_element_wise(instr.kind);
  }

  bool allows_for_elements(const Instr& instr) const {
    if (std::ranges::any_of(instr.operands, [&](ValueId v) { return is_kept_truth(v); })) {
      return false;
    }
    switch (instr.kind) {
      case InstrKind::load_linear:
      case InstrKind::load_at:
      case InstrKind::reduce:
      case InstrKind::flag_nonfinite:
      case InstrKind::column:
      case InstrKind::element:
        return true;
      case InstrKind::store_linear:
        return !facts_.storage(instr.buffers[0]).is_packed || is_packed_run(facts_, instr, length_);
      default:
        return kir::is_element_wise(instr.kind) || kir::is_draw(instr.kind);
    }
  }

  // A chunk does not keep truth values of its rows.
  bool is_kept_truth(ValueId value) const {
    return value && facts_.level(value) == Level::Group && section_of_[value.index()] != section_ &&
           facts_.type(value) == kir::ComputeType::Bool;
  }

  const CpuKernelFacts& facts_;
  std::vector<std::size_t> section_of_;  // of each value so far
  std::int64_t length_ = 0;
  std::size_t section_ = 0;
  std::size_t num_for_rows_ = 0;
  bool is_behind_elements_ = false;
};

}  // namespace

bool takes_rows_together(const CpuKernelFacts& facts) {
  return Rows(facts).go_together();
}

}  // namespace cinch::codegen
