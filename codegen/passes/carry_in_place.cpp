#include "codegen/passes/places.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "codegen/kir/structure.h"

namespace cinch::codegen {
namespace {

using kir::InstrKind;
using rt::BufferIndex;
using rt::StepKind;
using Steps = std::vector<rt::Step>;

class CarryInPlace {
 public:
  CarryInPlace(kir::KernelProgram& program, rt::StepLimit& steps)
      : program_(program), steps_(steps), to_(program.buffers.size()) {
    std::iota(to_.begin(), to_.end(), 0);
  }

  void run() {
    for (rt::Entry& entry : program_.entries) look_into(entry.steps);
    if (num_joined_ > 0) rename_buffers(program_, to_);
  }

 private:
  void look_into(Steps& steps) {
    for (rt::Step& step : steps) {
      for (Steps* inner : {&step.cond, &step.body, &step.orelse}) look_into(*inner);
      if (step.kind == StepKind::For || step.kind == StepKind::While) shorten(step.body);
    }
  }

  // Removes copies at the end of a round.
  void shorten(Steps& body) {
    std::size_t end = body.size();
    while (end > 0 && body[end - 1].kind == StepKind::Copy) --end;
    for (std::size_t i = end; i < body.size();) {
      const rt::Step& copy = body[i];
      if (can_join(body, end, copy) && steps_.may_take()) {
        join(body, end, copy);
        body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  bool can_join(const Steps& body, std::size_t end, const rt::Step& copy) const {
    const BufferIndex carried = copy.index, next = copy.index2;
    if (program_.buffers[next].role != rt::BufferRole::Workspace) return false;
    const std::size_t writer = writing_step(body, end, next);
    if (writer == end || num_steps_that_touch(next) != 2) return false;
    for (std::size_t i = writer + 1; i < end; ++i) {
      if (touches(body[i], carried)) return false;
    }
    const auto is_same_launch = [&](const rt::Step& step) {
      return step.kind == StepKind::Launch && step.index == body[writer].index;
    };
    return num_steps(is_same_launch) == 1 && is_by_one_thread(program_.kernels[body[writer].index]);
  }

  // Returns `end` if no launch writes it.
  std::size_t writing_step(const Steps& body, std::size_t end, BufferIndex next) const {
    std::size_t at = 0;
    while (at < end && (body[at].kind != StepKind::Launch || !touches(body[at], next))) ++at;
    return at;
  }

  static bool is_by_one_thread(const kir::Kernel& kernel) {
    if (!kir::is_of_scalars(kernel)) return false;
    // A store is not moved behind a load of the same buffer.
    std::set<BufferIndex> stored;
    for (const kir::Instr& instr : kernel.sections[0].instrs) {
      if (instr.kind == InstrKind::store_at) {
        // A predicated store may leave the old value
        if (kir::optional_operand(instr, 2)) return false;
        stored.insert(instr.buffers[0]);
      } else if (std::ranges::any_of(instr.buffers, [&](auto b) { return stored.contains(b); })) {
        return false;
      }
    }
    return true;
  }

  bool touches(const rt::Step& step, BufferIndex buffer) const {
    return kir::touches(program_, step, buffer);
  }

  template <class Wanted>
  std::size_t num_steps(const Wanted& wanted) const {
    std::size_t found = 0;
    for (const rt::Entry& entry : program_.entries) {
      for (const rt::Step& step : entry.steps) {
        kir::for_each_step(step, [&](const rt::Step& s) { found += wanted(s) ? 1 : 0; });
      }
    }
    return found;
  }

  std::size_t num_steps_that_touch(BufferIndex buffer) const {
    return num_steps([&](const rt::Step& step) {
      const bool holds_others = !step.cond.empty() || !step.body.empty() || !step.orelse.empty();
      return holds_others ? step.index == buffer : touches(step, buffer);
    });
  }

  void join(const Steps& body, std::size_t end, const rt::Step& copy) {
    kir::Kernel& kernel = program_.kernels[body[writing_step(body, end, copy.index2)].index];
    auto& instrs = kernel.sections[0].instrs;
    std::ranges::stable_partition(
        instrs, [](const kir::Instr& instr) { return instr.kind != InstrKind::store_at; });
    to_[copy.index2] = copy.index;
    ++num_joined_;
  }

  kir::KernelProgram& program_;
  rt::StepLimit& steps_;
  std::vector<BufferIndex> to_;
  std::size_t num_joined_ = 0;
};

}  // namespace

void carry_in_place(kir::KernelProgram& program, rt::StepLimit& steps) {
  CarryInPlace(program, steps).run();
}

}  // namespace cinch::codegen
