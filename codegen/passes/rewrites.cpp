#include <algorithm>
#include <ranges>

#include "codegen/kir/compute_type.h"
#include "codegen/passes/passes.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::ValueId;

class Unused {
 public:
  explicit Unused(kir::Kernel& kernel) : kernel_(kernel), is_used_(kernel.values.size(), false) {}

  void drop() {
    use(kernel_.extent_value);
    for (const kir::Combiner& combiner : kernel_.combiners) {
      for (const Instr& instr : combiner.body) use(instr);
      for (const auto* values : {&combiner.args, &combiner.results}) {
        for (const ValueId v : *values) use(v);
      }
      for (const Instr& instr : combiner.body) {
        for (const ValueId v : instr.results) use(v);
      }
    }
    for (kir::Section& section : kernel_.sections | std::views::reverse) drop_from(section);
    number_anew();
  }

 private:
  void use(ValueId v) {
    if (v) is_used_[v.index()] = true;
  }
  void use(const Instr& instr) {
    for (const ValueId v : instr.operands) use(v);
  }

  void drop_from(kir::Section& section) {
    std::vector<Instr> kept;
    for (Instr& instr : section.instrs | std::views::reverse) {
      const bool is_pure =
          kir::is_computed(instr.kind) || instr.kind == kir::InstrKind::stochastic_round;
      const bool has_use =
          std::ranges::any_of(instr.results, [&](ValueId v) { return is_used_[v.index()]; });
      if (is_pure && !has_use) continue;
      use(instr);
      for (const ValueId v : instr.results) use(v);
      kept.push_back(std::move(instr));
    }
    std::ranges::reverse(kept);
    section.instrs = std::move(kept);
  }

  void number_anew() {
    std::vector<ValueId> place(kernel_.values.size());
    std::vector<kir::Value> kept;
    for (std::size_t v = 0; v < place.size(); ++v) {
      if (!is_used_[v]) continue;
      place[v] = ValueId(kept.size());
      kept.push_back(std::move(kernel_.values[v]));
    }
    kernel_.values = std::move(kept);
    const auto rename = [&](std::vector<ValueId>& values) {
      for (ValueId& v : values) {
        if (v) v = place[v.index()];
      }
    };
    const auto rename_all = [&](std::vector<Instr>& instrs) {
      for (Instr& instr : instrs) {
        rename(instr.operands);
        rename(instr.results);
      }
    };
    for (kir::Section& section : kernel_.sections) rename_all(section.instrs);
    for (kir::Combiner& combiner : kernel_.combiners) {
      rename(combiner.args);
      rename(combiner.results);
      rename_all(combiner.body);
    }
    if (kernel_.extent_value) kernel_.extent_value = place[kernel_.extent_value.index()];
  }

  kir::Kernel& kernel_;
  std::vector<bool> is_used_;
};

using kir::InstrKind;

// The condition under which the value is 1 and otherwise 0; or none.
ValueId counted_truth(const Definitions& made, ValueId value) {
  const auto is_constant = [&](ValueId v, std::uint64_t bits) {
    const Instr* definition = made.of(v);
    return definition && definition->kind == InstrKind::constant && definition->bits == bits;
  };
  const Instr* definition = made.of(value);
  if (!definition) return {};
  if (definition->kind == InstrKind::convert && is_bool(definition->from_dtype))
    return definition->operands[0];
  const bool is_select =
      definition->kind == InstrKind::scalar && definition->scalar_op == ScalarOp::select &&
      is_constant(definition->operands[1], 1) && is_constant(definition->operands[2], 0);
  return is_select ? definition->operands[0] : ValueId();
}

// The rounding whose only use is the conversion, or null.
const Instr* rounding_of(const kir::Kernel& kernel, const Definitions& made, const Instr& convert) {
  constexpr int kLeastBits = 2, kMostBits = 32;
  const bool is_short = convert.kind == InstrKind::convert && is_int(convert.dtype) &&
                        convert.dtype.bits >= kLeastBits && convert.dtype.bits <= kMostBits;
  if (!is_short) return nullptr;
  const Instr* round = made.of(convert.operands[0]);
  const bool is_rounded = round != nullptr && round->kind == InstrKind::stochastic_round &&
                          kernel.values[convert.operands[0].index()].type == kir::ComputeType::F32;
  return is_rounded ? round : nullptr;
}

bool convert_roundings(kir::Kernel& kernel, rt::StepLimit& steps) {
  const Definitions made(kernel);
  bool has_changed = false;
  for (kir::Section& section : kernel.sections) {
    if (section.kind != kir::SectionKind::Elements) continue;
    for (Instr& instr : section.instrs) {
      const Instr* round = rounding_of(kernel, made, instr);
      if (round == nullptr || !steps.may_take()) continue;
      const DType dtype = instr.dtype;
      const auto results = instr.results;
      instr = *round;
      instr.dtype = dtype;
      instr.results = results;
      has_changed = true;
    }
  }
  return has_changed;
}

}  // namespace

void drop_unused(kir::Kernel& kernel) {
  Unused(kernel).drop();
}

void count_truths(kir::KernelProgram& program, rt::StepLimit& steps) {
  for (kir::Kernel& kernel : program.kernels) {
    const Definitions made(kernel);
    bool has_changed = false;
    for (kir::Section& section : kernel.sections) {
      for (Instr& instr : section.instrs) {
        if (instr.kind != InstrKind::running_sum) continue;
        const ValueId truth = counted_truth(made, instr.operands[0]);
        if (!truth || !steps.may_take()) continue;
        instr.operands[0] = truth;
        has_changed = true;
      }
    }
    if (has_changed) drop_unused(kernel);
  }
}

void round_to_integers(kir::KernelProgram& program, rt::StepLimit& steps) {
  for (kir::Kernel& kernel : program.kernels) {
    if (convert_roundings(kernel, steps)) drop_unused(kernel);
  }
}

}  // namespace cinch::codegen
