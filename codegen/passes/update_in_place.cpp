#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "codegen/kir/builder.h"
#include "codegen/kir/verifier.h"
#include "codegen/passes/passes.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::InstrKind;
using rt::BufferIndex;
using Steps = std::vector<rt::Step>;

bool uses(const Instr& instr, BufferIndex buffer) {
  return std::find(instr.buffers.begin(), instr.buffers.end(), buffer) != instr.buffers.end();
}

// The two buffers of one state.
struct Pair {
  BufferIndex now, next;
};

class InPlace {
 public:
  InPlace(kir::KernelProgram& program, rt::StepLimit& steps)
      : program_(program),
        steps_(steps),
        entry_(program.entries[static_cast<std::size_t>(rt::EntryKind::Encode)]) {}

  void run() {
    if (!entry_.present) return;
    std::vector<Pair> pairs;
    std::size_t first = entry_.steps.size();
    for (BufferIndex b = 0; b < program_.buffers.size(); ++b) {
      const auto pair = pair_of(b);
      if (!pair) continue;
      const auto writer = writing_step(*pair);
      if (!writer || !can_write_at(*writer, *pair) || !steps_.may_take()) continue;
      pairs.push_back(*pair);
      first = std::min(first, *writer);
    }
    if (pairs.empty()) return;
    entry_.commit_step = static_cast<std::uint32_t>(first);
    check_before(first);
    join(pairs);
  }

 private:
  // The state's buffers, given the one for its new values.
  std::optional<Pair> pair_of(BufferIndex next) const {
    const rt::BufferInfo& info = program_.buffers[next];
    if (info.role != rt::BufferRole::StateNext || info.storage_bits % 8 != 0) return std::nullopt;
    const auto& finish = program_.entries[static_cast<std::size_t>(rt::EntryKind::Finish)];
    const auto& touched = finish.buffers;
    if (std::find(touched.begin(), touched.end(), next) != touched.end()) return std::nullopt;
    for (BufferIndex b = 0; b < program_.buffers.size(); ++b) {
      const rt::BufferInfo& other = program_.buffers[b];
      if (other.role == rt::BufferRole::State && other.role_index == info.role_index) {
        return Pair{b, next};
      }
    }
    return std::nullopt;
  }

  bool touches(const rt::Step& step, BufferIndex buffer) const {
    return kir::touches(program_, step, buffer);
  }

  // The first step that uses the new values, if it launches a kernel.
  std::optional<std::size_t> writing_step(const Pair& pair) const {
    for (std::size_t i = 0; i < entry_.steps.size(); ++i) {
      if (!touches(entry_.steps[i], pair.next)) continue;
      if (entry_.steps[i].kind == rt::StepKind::Launch) return i;
      break;
    }
    return std::nullopt;
  }

  bool can_write_at(std::size_t step, const Pair& pair) const {
    for (std::size_t i = step; i < entry_.steps.size(); ++i) {
      if (can_fail(entry_.steps[i])) return false;
      if (i > step && touches(entry_.steps[i], pair.now)) return false;
    }
    return reads_before_it_writes(program_.kernels[entry_.steps[step].index], pair);
  }

  bool can_fail(const rt::Step& step) const {
    bool found = false;
    kir::for_each_step(step, [&](const rt::Step& s) {
      found |= s.kind == rt::StepKind::CheckHost;
      if (s.kind != rt::StepKind::Launch) return;
      for (const kir::Section& section : program_.kernels[s.index].sections) {
        for (const Instr& instr : section.instrs) found |= instr.kind == InstrKind::fail_if;
      }
    });
    return found;
  }

  // Is there one store of all elements and, before it, in the same section and for the same
  // elements, all loads? A lane then loads only its own element, and before it stores.
  static bool reads_before_it_writes(const kir::Kernel& kernel, const Pair& pair) {
    const kir::Section* storing = nullptr;
    const Instr* store = nullptr;
    for (const kir::Section& section : kernel.sections) {
      for (const Instr& instr : section.instrs) {
        if (!uses(instr, pair.next)) continue;
        const bool is_first_store = instr.kind == InstrKind::store_linear && store == nullptr;
        if (!is_first_store) return false;
        storing = &section;
        store = &instr;
      }
    }
    if (store == nullptr) return false;
    for (const kir::Section& section : kernel.sections) {
      for (const Instr& instr : section.instrs) {
        if (!uses(instr, pair.now)) continue;
        const bool is_own = instr.kind == InstrKind::load_linear && &section == storing &&
                            &instr < store &&
                            kir::optional_operand(instr, 0) == kir::optional_operand(*store, 1);
        if (!is_own) return false;
      }
    }
    return true;
  }

  // Non-finite values must be found before step `first`: if a later kernel checks for them, a
  // separate sweep does it instead.
  void check_before(std::size_t first) {
    bool is_later = false;
    for (std::size_t i = first; i < entry_.steps.size(); ++i) {
      kir::for_each_step(entry_.steps[i], [&](const rt::Step& s) {
        if (s.kind == rt::StepKind::Launch) is_later |= drop_check(program_.kernels[s.index]);
      });
    }
    if (!is_later) return;
    const std::uint32_t check = make_check();
    entry_.steps.insert(entry_.steps.begin(), {.kind = rt::StepKind::Launch, .index = check});
    ++entry_.commit_step;
  }

  BufferIndex gradient() const {
    BufferIndex found = 0;
    while (program_.buffers[found].role != rt::BufferRole::Gradient) ++found;
    return found;
  }

  std::uint32_t make_check() {
    kir::KernelBuilder b(program_, "encode_check", kir::GroupKind::Tile);
    b.set_extent(program_.info.exprs->n());
    b.elements();
    b.reads(gradient(), kir::given_version(program_.buffers[gradient()]));
    const kir::ValueId g = b.load_linear(gradient(), b.group_base());
    b.flag_nonfinite(g);
    b.kernel().info.fused.emplace_back("check finite");
    return b.finish();
  }

  // Removes the check from a kernel; returns whether it had one. The values that it read stay,
  // unused.
  static bool drop_check(kir::Kernel& kernel) {
    bool found = false;
    for (kir::Section& section : kernel.sections) {
      found |= std::erase_if(section.instrs, [](const Instr& instr) {
                 return instr.kind == InstrKind::flag_nonfinite;
               }) > 0;
    }
    if (!found) return false;
    std::erase(kernel.info.fused, "check finite");
    return true;
  }

  // Makes both the buffer of the present values.
  void join(const std::vector<Pair>& pairs) {
    std::vector<BufferIndex> to(program_.buffers.size());
    std::iota(to.begin(), to.end(), 0);
    for (const Pair& pair : pairs) {
      program_.buffers[pair.now].role = rt::BufferRole::StateInPlace;
      to[pair.next] = pair.now;
    }
    rename_buffers(program_, to);
  }

  kir::KernelProgram& program_;
  rt::StepLimit& steps_;
  rt::Entry& entry_;
};

}  // namespace

void update_in_place(kir::KernelProgram& program, rt::StepLimit& steps) {
  InPlace(program, steps).run();
}

namespace {

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
