#include "codegen/passes/passes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "codegen/kir/compute_type.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;
using rt::BufferIndex;

void each_instr(const kir::Kernel& kernel, const std::function<void(const Instr&)>& use) {
  for (const kir::Section& section : kernel.sections) std::ranges::for_each(section.instrs, use);
  for (const kir::Combiner& combiner : kernel.combiners) std::ranges::for_each(combiner.body, use);
}

bool is_store(const Instr& instr) {
  return instr.kind == InstrKind::store_at || instr.kind == InstrKind::store_linear;
}

// For each buffer, the kernels that use it for more than storing.
using OtherUses = std::map<BufferIndex, std::set<const kir::Kernel*>>;

OtherUses other_uses(const kir::KernelProgram& program) {
  OtherUses uses;
  for (const kir::Kernel& kernel : program.kernels) {
    each_instr(kernel, [&](const Instr& instr) {
      if (is_store(instr)) return;
      for (const BufferIndex b : instr.buffers) uses[b].insert(&kernel);
    });
  }
  return uses;
}

class FoldCheck {
 public:
  FoldCheck(const kir::KernelProgram& program, const kir::Kernel& kernel, const OtherUses& uses)
      : program_(program), kernel_(kernel), uses_(uses) {}

  bool holds() {
    if (kernel_.group_kind != kir::GroupKind::Single || kernel_.info.is_sequential) return false;
    if (kernel_.sections.size() > 1) return false;
    return take_partials() && !depends_on_itself() && are_the_sweeps() &&
           std::ranges::all_of(program_.entries, [this](const rt::Entry& entry) {
             return follows_its_sweep(entry.steps);
           });
  }

 private:
  // Collects the kernel's partials. Returns false if there are none, or if a buffer is more than
  // the partials of one reduction.
  bool take_partials() {
    std::multiset<BufferIndex> used;
    bool keeps_all = true;
    each_instr(kernel_, [&](const Instr& instr) {
      used.insert(instr.buffers.begin(), instr.buffers.end());
      if (instr.kind == InstrKind::finish_scan) keeps_all = false;
      if (instr.kind != InstrKind::finish_reduce) return;
      const bool has_flag = !kernel_.combiners[instr.combiner].op;
      for (const BufferIndex& buffer : instr.buffers) {
        partials_.insert(buffer);
        keeps_all = keeps_all && keeps(buffer, has_flag && &buffer == &instr.buffers.back());
      }
    });
    return keeps_all && !partials_.empty() &&
           std::ranges::all_of(partials_, [&](BufferIndex b) { return used.count(b) == 1; });
  }

  // Does the buffer hold every result without conversion? Flags are 0 or 1.
  bool keeps(BufferIndex buffer, bool is_flag) const {
    const rt::BufferInfo& info = program_.buffers[buffer];
    if (info.role != rt::BufferRole::Workspace) return false;
    if (is_flag) return info.storage_bits == 8;
    return info.dtype == kir::dtype_of(kir::compute_type(info.dtype)) &&
           info.storage_bits == kir::whole_element_bits(info.dtype);
  }

  // Do counts, combiners or loads depend on what the kernel itself computes, in values or through
  // memory?
  bool depends_on_itself() const {
    std::set<BufferIndex> stored;
    each_instr(kernel_, [&](const Instr& instr) {
      if (is_store(instr)) stored.insert(instr.buffers.begin(), instr.buffers.end());
    });
    std::set<kir::ValueId> made;
    const auto follows = [&](const Instr& instr) {
      return std::ranges::any_of(instr.operands,
                                 [&](kir::ValueId v) { return made.contains(v); }) ||
             (instr.kind == InstrKind::load_at && stored.contains(instr.buffers[0]));
    };
    bool does = false;
    for (const kir::Section& section : kernel_.sections) {
      for (const Instr& instr : section.instrs) {
        const bool is_reduction = instr.kind == InstrKind::finish_reduce;
        const bool is_read = instr.kind == InstrKind::load_at;
        does = does || ((is_reduction || is_read) && follows(instr));
        if (is_reduction || follows(instr)) made.insert(instr.results.begin(), instr.results.end());
      }
    }
    return does || std::ranges::any_of(kernel_.combiners, [&](const kir::Combiner& combiner) {
             return std::ranges::any_of(combiner.body, follows);
           });
  }

  bool is_partial(BufferIndex buffer) const { return partials_.contains(buffer); }

  // Do all other kernels use the partials only for storing?
  bool are_the_sweeps() const {
    return std::ranges::all_of(partials_, [&](BufferIndex b) {
      return std::ranges::all_of(uses_.at(b), [&](const kir::Kernel* k) { return k == &kernel_; });
    });
  }

  bool stores_partials(const rt::Step& step) const {
    if (step.kind != rt::StepKind::Launch) return false;
    std::set<BufferIndex> stored;
    each_instr(program_.kernels[step.index], [&](const Instr& instr) {
      if (is_store(instr)) stored.insert(instr.buffers.begin(), instr.buffers.end());
    });
    return std::ranges::includes(stored, partials_);
  }

  // Are the partials made anew before each launch of the kernel, under the same conditions?
  // Otherwise they could be folded twice.
  bool follows_its_sweep(const std::vector<rt::Step>& steps) const {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const rt::Step& step = steps[i];
      const bool is_own =
          step.kind == rt::StepKind::Launch && &program_.kernels[step.index] == &kernel_;
      if (is_own && (i == 0 || !stores_partials(steps[i - 1]))) return false;
      const bool names_buffers =
          step.kind != rt::StepKind::Launch && step.kind != rt::StepKind::CheckHost;
      if (names_buffers && (is_partial(step.index) || is_partial(step.index2))) return false;
      for (const auto* inner : {&step.cond, &step.body, &step.orelse}) {
        if (!follows_its_sweep(*inner)) return false;
      }
    }
    return true;
  }

  const kir::KernelProgram& program_;
  const kir::Kernel& kernel_;
  const OtherUses& uses_;
  std::set<BufferIndex> partials_;
};

}  // namespace

void mark_foldable(kir::KernelProgram& program) {
  const OtherUses uses = other_uses(program);
  for (kir::Kernel& kernel : program.kernels)
    kernel.is_foldable = FoldCheck(program, kernel, uses).holds();
}

}  // namespace cinch::codegen
