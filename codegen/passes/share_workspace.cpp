#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "codegen/passes/passes.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
namespace {

using rt::BufferIndex;
using Steps = std::vector<rt::Step>;

struct Range {
  std::size_t begin = 0, end = 0;  // the first and the last step that use it
};

// The live range of each buffer of an entry.
class LiveRanges {
 public:
  LiveRanges(const kir::KernelProgram& program, const rt::Entry& entry) : program_(program) {
    walk(entry.steps);
  }
  const std::map<BufferIndex, Range>& ranges() const { return ranges_; }
  bool is_named_by_step(BufferIndex b) const { return named_.contains(b); }

 private:
  void touch(BufferIndex buffer) {
    const auto [at, is_new] = ranges_.try_emplace(buffer, Range{now_, now_});
    at->second.end = now_;
    if (loop_depth_ > 0) in_loop_.push_back(buffer);
  }

  void walk(const Steps& list) {
    for (const rt::Step& step : list) {
      ++now_;
      if (step.kind == rt::StepKind::Launch) {
        for (const kir::Section& section : program_.kernels[step.index].sections) {
          for (const kir::Instr& instr : section.instrs) {
            for (const BufferIndex b : instr.buffers) touch(b);
          }
        }
        continue;
      }
      if (step.kind == rt::StepKind::CheckHost) continue;
      touch(step.index);
      if (step.has_source()) touch(step.index2);
      for (const BufferIndex scalar : step.scalars) touch(scalar);
      if (step.kind == rt::StepKind::Zero || step.kind == rt::StepKind::Copy) continue;
      named_.insert(step.index);
      if (step.has_source()) named_.insert(step.index2);
      named_.insert(step.scalars.begin(), step.scalars.end());
      const bool loops = step.kind == rt::StepKind::For || step.kind == rt::StepKind::While;
      loops ? walk_loop(step) : walk_inner(step);
    }
  }
  void walk_inner(const rt::Step& step) {
    for (const Steps* list : {&step.cond, &step.body, &step.orelse}) walk(*list);
  }
  void walk_loop(const rt::Step& step) {
    const std::size_t begin = now_;
    ++loop_depth_;
    touch(step.index);
    walk_inner(step);
    --loop_depth_;
    ++now_;
    for (const BufferIndex b : in_loop_) {
      Range& range = ranges_.at(b);
      range.begin = std::min(range.begin, begin);
      range.end = now_;
    }
    if (loop_depth_ == 0) in_loop_.clear();
  }

  const kir::KernelProgram& program_;
  std::size_t now_ = 0;
  int loop_depth_ = 0;
  std::vector<BufferIndex> in_loop_;
  std::map<BufferIndex, Range> ranges_;
  std::set<BufferIndex> named_;
};

class Sharing {
 public:
  Sharing(kir::KernelProgram& program, rt::StepLimit& steps)
      : program_(program), steps_(steps), to_(program.buffers.size()) {
    std::iota(to_.begin(), to_.end(), 0);
  }

  void run() {
    std::map<BufferIndex, int> num_entries;
    for (const rt::Entry& entry : program_.entries) {
      for (const BufferIndex b : entry.buffers) ++num_entries[b];
    }
    for (const rt::Entry& entry : program_.entries) {
      const LiveRanges live(program_, entry);
      share(live, num_entries);
    }
    rename_buffers(program_, to_);
  }

 private:
  using Kind = std::tuple<std::uint64_t, std::uint32_t, std::uint64_t>;

  void share(const LiveRanges& live, const std::map<BufferIndex, int>& num_entries) {
    std::vector<std::pair<Range, BufferIndex>> arrays;
    for (const auto& [b, range] : live.ranges()) {
      const bool is_own = num_entries.at(b) == 1 && !live.is_named_by_step(b);
      const rt::BufferInfo& info = program_.buffers[b];
      const bool may_share =
          info.role == rt::BufferRole::Workspace && !program_.info.exprs->is_const(info.num_elems);
      if (is_own && may_share) arrays.emplace_back(range, b);
    }
    std::ranges::sort(arrays, {}, [](const auto& a) { return std::pair(a.first.begin, a.second); });
    // By kind: end of use, and the buffer
    std::map<Kind, std::vector<std::pair<std::size_t, BufferIndex>>> rooms;
    for (const auto& [range, b] : arrays) {
      const rt::BufferInfo& info = program_.buffers[b];
      const auto type = static_cast<std::uint64_t>(info.dtype.kind) << 8 | info.dtype.bits;
      auto& of_kind = rooms[{type, info.storage_bits, info.num_elems.index()}];
      const auto begin = range.begin;
      const auto room =
          std::ranges::find_if(of_kind, [&](const auto& r) { return r.first < begin; });
      if (room == of_kind.end() || !steps_.may_take()) {
        of_kind.emplace_back(range.end, b);
        continue;
      }
      to_[b] = room->second;
      room->first = range.end;
    }
  }

  kir::KernelProgram& program_;
  rt::StepLimit& steps_;
  std::vector<BufferIndex> to_;
};

}  // namespace

void share_workspace(kir::KernelProgram& program, rt::StepLimit& steps) {
  Sharing(program, steps).run();
}

namespace {

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
