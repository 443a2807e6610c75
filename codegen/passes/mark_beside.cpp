#include "codegen/passes/marks.h"

#include <algorithm>
#include <set>
#include <span>

namespace cinch::codegen {
namespace {

using rt::BufferIndex;
using rt::StepKind;
using Steps = std::vector<rt::Step>;

// Does nothing write it during a call?
bool is_only_read(const kir::KernelProgram& program, BufferIndex buffer) {
  const rt::BufferRole role = program.buffers[buffer].role;
  return role == rt::BufferRole::Gradient || role == rt::BufferRole::Constant;
}

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
        if (!is_only_read(program, b)) own.insert(b);
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

}  // namespace cinch::codegen
