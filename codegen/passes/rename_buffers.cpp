#include "codegen/passes/places.h"

#include <algorithm>

namespace cinch::codegen {
namespace {

using rt::BufferIndex;
using Steps = std::vector<rt::Step>;

class Renaming {
 public:
  Renaming(kir::KernelProgram& program, const std::vector<BufferIndex>& to)
      : program_(program), to_(to) {}

  void run() {
    for (kir::Kernel& kernel : program_.kernels) {
      for (kir::Section& section : kernel.sections) {
        for (kir::Instr& instr : section.instrs) {
          for (BufferIndex& b : instr.buffers) rename(b);
        }
      }
      rename(kernel.reads);
      rename(kernel.writes);
    }
    for (auto& results : program_.results) rename(results);
    for (kir::StepTouch& touch : program_.step_touches) {
      rename(touch.step);
      rename(touch.buffer);
    }
    for (rt::Entry& entry : program_.entries) {
      rename(entry.steps);
      for (BufferIndex& b : entry.buffers) rename(b);
      std::ranges::sort(entry.buffers);
      const auto repeated = std::ranges::unique(entry.buffers);
      entry.buffers.erase(repeated.begin(), repeated.end());
    }
  }

 private:
  void rename(BufferIndex& buffer) const { buffer = to_.at(buffer); }
  void rename(std::vector<kir::Touch>& touches) const {
    for (kir::Touch& touch : touches) rename(touch.buffer);
  }
  void rename(Steps& steps) const {
    for (rt::Step& step : steps) {
      const bool names_buffer =
          step.kind != rt::StepKind::Launch && step.kind != rt::StepKind::CheckHost;
      if (names_buffer) rename(step.index);
      if (step.has_source()) rename(step.index2);
      for (BufferIndex& scalar : step.scalars) rename(scalar);
      for (Steps* list : {&step.cond, &step.body, &step.orelse}) rename(*list);
    }
  }

  kir::KernelProgram& program_;
  const std::vector<BufferIndex>& to_;
};

}  // namespace

void rename_buffers(kir::KernelProgram& program, const std::vector<BufferIndex>& to) {
  std::vector<BufferIndex> place(program.buffers.size()), joined(to);
  std::vector<rt::BufferInfo> kept;
  for (BufferIndex b = 0; b < program.buffers.size(); ++b) {
    place[b] = static_cast<BufferIndex>(kept.size());
    if (to[b] == b) kept.push_back(std::move(program.buffers[b]));
  }
  for (BufferIndex& b : joined) b = place[b];
  program.buffers = std::move(kept);
  Renaming(program, joined).run();
}

}  // namespace cinch::codegen
