// The passes that mark what is alike, beside and compact; the order of all passes, and the check of
// what they state.
#include <algorithm>
#include <set>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/text/text.h"
#include "codegen/kir/verifier.h"
#include "codegen/passes/passes.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;
using kir::ValueId;

class Alike {
 public:
  explicit Alike(kir::Kernel& kernel) : kernel_(kernel), made_(kernel) {
    for (const kir::Section& section : kernel.sections) {
      for (const Instr& instr : section.instrs) {
        const bool is_load = kir::is_load(instr.kind);
        if (!is_load) changed_.insert(instr.buffers.begin(), instr.buffers.end());
      }
    }
  }

  void mark() {
    for (kir::Section& section : kernel_.sections) {
      if (section.kind != kir::SectionKind::Elements) continue;
      for (Instr& instr : section.instrs) {
        instr.is_alike = is_alike(instr);
        if (instr.is_alike) alike_.insert(instr.results[0].index());
      }
    }
  }

 private:
  // An integer constant, perhaps in another type; 0 if the value is not one.
  std::uint64_t whole_constant(ValueId value) const {
    const Instr* made = made_.of(value);
    const bool is_converted =
        made && made->kind == InstrKind::convert && is_int(made->dtype) && is_int(made->from_dtype);
    if (is_converted) made = made_.of(made->operands[0]);
    return made && made->kind == InstrKind::constant &&
                   kir::is_integer(kernel_.values[made->results[0].index()].type)
               ? made->bits
               : 0;
  }

  // Does it divide the element's number by a multiple of a row's length? Rows begin at multiples of
  // it.
  bool divides_rows(const Instr& instr) const {
    if (instr.kind != InstrKind::scalar || instr.operands.size() != 2) return false;
    const Instr* element = made_.of(instr.operands[0]);
    if (!element || element->kind != InstrKind::element) return false;
    const std::uint64_t by = whole_constant(instr.operands[1]);
    if (instr.scalar_op == ScalarOp::div) return by != 0 && by % kir::kRowElems == 0;
    constexpr std::uint64_t kMostShift = 32;
    return instr.scalar_op == ScalarOp::shr && by < kMostShift &&
           (1ull << by) % kir::kRowElems == 0;
  }

  bool is_alike(const Instr& instr) const {
    if (divides_rows(instr)) return true;
    const bool is_load = instr.kind == InstrKind::load_at && !changed_.contains(instr.buffers[0]);
    if (!is_load && !kir::is_computed(instr.kind)) return false;
    bool depends = false;
    for (const ValueId operand : instr.operands) {
      const bool is_shared = !operand || !made_.is_of_elements(operand) ||
                             (made_.of(operand) && made_.of(operand)->kind == InstrKind::constant);
      if (is_shared) continue;
      if (!alike_.contains(operand.index())) return false;
      depends = true;
    }
    return depends;
  }

  kir::Kernel& kernel_;
  Definitions made_;
  std::set<rt::BufferIndex> changed_;
  std::set<std::uint32_t> alike_;
};

bool is_scalar(const Instr* instr, ScalarOp op) {
  return instr && instr->kind == InstrKind::scalar && instr->scalar_op == op;
}

class CompactStores {
 public:
  explicit CompactStores(const kir::Kernel& kernel) : kernel_(kernel), made_(kernel) {}

  bool is_compact(const Instr& store) const {
    const ValueId index = store.operands[0], pred = kir::optional_operand(store, 2);
    const Instr* sum = made_.of(index);
    if (!pred || !is_scalar(sum, ScalarOp::add) || made_.is_of_elements(sum->operands[0]))
      return false;
    const Instr* count = made_.of(sum->operands[1]);
    const bool counts = count && count->kind == InstrKind::running_sum && count->exclusive &&
                        count->results[0] == sum->operands[1];
    if (!counts) return false;
    const ValueId truth = count->operands[0];
    return kernel_.values[truth.index()].type == kir::ComputeType::Bool &&
           (pred == truth || is_cut(pred, truth, index));
  }

 private:
  // Is the condition the truth combined with "the place is below a limit"?
  bool is_cut(ValueId pred, ValueId truth, ValueId index) const {
    const Instr* both = made_.of(pred);
    if (!is_scalar(both, ScalarOp::bit_and)) return false;
    const auto is_below = [&](ValueId v) {
      const Instr* below = made_.of(v);
      return is_scalar(below, ScalarOp::lt) && below->operands[0] == index &&
             !made_.is_of_elements(below->operands[1]);
    };
    return (both->operands[0] == truth && is_below(both->operands[1])) ||
           (both->operands[1] == truth && is_below(both->operands[0]));
  }

  const kir::Kernel& kernel_;
  Definitions made_;
};

[[noreturn]] void refuse(const kir::KernelProgram& program, const kir::Kernel& kernel,
                         const kir::Instr& instr, const std::string& stage) {
  const char* fact = instr.is_alike ? "alike" : "compact";
  InternalError error(
      InternalErrorKind::Bug,
      "kernel " + kernel.info.symbol + ": not " + fact + ": " + kir::print(program, kernel, instr),
      "codegen/passes/marks.cpp");
  error.attach(stage, kir::print(program, kernel));
  throw error;
}

void check_beside(const kir::KernelProgram& program, std::span<const rt::Step> steps,
                  const std::string& stage) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const rt::Step& step = steps[i];
    for (const auto* inner : {&step.cond, &step.body, &step.orelse}) {
      check_beside(program, *inner, stage);
    }
    if (step.kind != rt::StepKind::Launch || step.index2 == rt::kNoIndex) continue;
    if (step.index2 <= steps.size() - i && run_beside(program, steps.subspan(i, step.index2))) {
      continue;
    }
    InternalError error(InternalErrorKind::Bug, "launches beside one another that may not be",
                        "codegen/passes/marks.cpp");
    error.attach(stage, kir::print(program));
    throw error;
  }
}

}  // namespace

void mark_alike(kir::KernelProgram& program) {
  for (kir::Kernel& kernel : program.kernels) {
    if (kernel.group_kind == kir::GroupKind::Tile) Alike(kernel).mark();
  }
}

namespace {

using rt::BufferIndex;
using rt::StepKind;
using Steps = std::vector<rt::Step>;

// Adds the buffers that the kernel uses. Returns false if they conflict with those already there,
// or if the kernel is not suitable.
bool take_buffers(const kir::KernelProgram& program, const rt::Step& launch,
                  std::set<BufferIndex>& touched) {
  const kir::Kernel& kernel = program.kernels[launch.index];
  if (!kernel.info.is_sequential) return false;
  std::set<BufferIndex> own;
  bool can_fail = false;
  const auto note = [&](const std::vector<kir::Instr>& instrs) {
    for (const kir::Instr& instr : instrs) {
      can_fail = can_fail || instr.kind == kir::InstrKind::fail_if;
      for (const BufferIndex b : instr.buffers) {
        const rt::BufferRole role = program.buffers[b].role;
        const bool is_only_read =
            role == rt::BufferRole::Gradient || role == rt::BufferRole::Constant;
        if (!is_only_read) own.insert(b);
      }
    }
  };
  for (const kir::Section& section : kernel.sections) note(section.instrs);
  for (const kir::Combiner& combiner : kernel.combiners) note(combiner.body);
  if (can_fail) return false;
  const auto is_taken = [&](BufferIndex b) { return touched.contains(b); };
  if (std::any_of(own.begin(), own.end(), is_taken)) return false;
  touched.insert(own.begin(), own.end());
  return true;
}

class Marker {
 public:
  explicit Marker(const kir::KernelProgram& program) : program_(program) {}

  // `commit`: steps before it stay before it.
  void mark(Steps& steps, std::size_t commit) {
    for (std::size_t at = 0; at < steps.size();) {
      at += std::max<std::size_t>(join(steps, at, at < commit ? commit : steps.size()), 1);
    }
    for (rt::Step& step : steps) {
      for (Steps* inner : {&step.cond, &step.body, &step.orelse}) mark(*inner, inner->size());
    }
  }

 private:
  // Searches from `begin` on. Returns how many steps it has placed.
  std::size_t join(Steps& steps, std::size_t begin, std::size_t limit) const {
    std::set<BufferIndex> touched;
    std::size_t at = begin, end = begin, num_launches = 0;
    for (; at < std::min(limit, steps.size()); ++at) {
      const rt::Step& step = steps[at];
      if (step.kind == StepKind::Zero && !touched.contains(step.index)) continue;
      if (step.kind != StepKind::Launch || !take_buffers(program_, step, touched)) break;
      end = at + 1;
      ++num_launches;
    }
    if (num_launches < 2) return 0;
    const auto first = steps.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto launches =
        std::stable_partition(first, steps.begin() + static_cast<std::ptrdiff_t>(end),
                              [](const rt::Step& s) { return s.kind == StepKind::Zero; });
    launches->index2 = static_cast<std::uint32_t>(num_launches);
    return end - begin;
  }

  const kir::KernelProgram& program_;
};

}  // namespace

bool run_beside(const kir::KernelProgram& program, std::span<const rt::Step> launches) {
  std::set<BufferIndex> touched;
  return std::all_of(launches.begin(), launches.end(), [&](const rt::Step& step) {
    return step.kind == StepKind::Launch && take_buffers(program, step, touched);
  });
}

void mark_beside(kir::KernelProgram& program) {
  for (rt::Entry& entry : program.entries) {
    const std::size_t commit =
        entry.commit_step == rt::kNoIndex ? entry.steps.size() : entry.commit_step;
    Marker(program).mark(entry.steps, commit);
  }
}

void mark_compact(kir::KernelProgram& program) {
  for (kir::Kernel& kernel : program.kernels) {
    const CompactStores stores(kernel);
    for (kir::Section& section : kernel.sections) {
      if (section.kind != kir::SectionKind::Elements) continue;
      for (Instr& instr : section.instrs)
        instr.is_compact = instr.kind == InstrKind::store_at && stores.is_compact(instr);
    }
  }
}

void run_kernel_passes(kir::KernelProgram& program, StateUpdate states, rt::StepLimit& steps) {
  if (states == StateUpdate::InPlace) {
    update_in_place(program, steps);
    kir::check_versions(program, "update_in_place");
  }
  carry_in_place(program, steps);
  kir::check_versions(program, "carry_in_place");
  count_truths(program, steps);
  round_to_integers(program, steps);
  mark_alike(program);
  mark_compact(program);
  mark_foldable(program);  // before other values share the buffers of partials
  share_workspace(program, steps);
  mark_beside(program);
  kir::check_versions(program, "share_workspace");
  check_facts(program, "share_workspace");
}

void check_facts(const kir::KernelProgram& program, const std::string& stage) {
  kir::KernelProgram shown;
  shown.kernels = program.kernels;  // the passes read nothing else
  mark_alike(shown);
  mark_compact(shown);
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const kir::Kernel& kernel = program.kernels[k];
    for (std::size_t s = 0; s < kernel.sections.size(); ++s) {
      for (std::size_t i = 0; i < kernel.sections[s].instrs.size(); ++i) {
        const kir::Instr& said = kernel.sections[s].instrs[i];
        const kir::Instr& found = shown.kernels[k].sections[s].instrs[i];
        if (said.is_alike > found.is_alike || said.is_compact > found.is_compact)
          refuse(program, kernel, said, stage);
      }
    }
  }
  for (const rt::Entry& entry : program.entries) check_beside(program, entry.steps, stage);
}

}  // namespace cinch::codegen
