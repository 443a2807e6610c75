#include "codegen/kir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "codegen/kir/text/text.h"
#include "runtime/core/check.h"

namespace cinch::kir {
namespace {

using Contents = std::vector<Version>;

enum class Access : std::uint8_t { None, Load, Store, Change };

// What an instruction does to the buffer at `place` of its list.
Access access_of(InstrKind kind, std::size_t place) {
  switch (kind) {
    case InstrKind::load_linear:
    case InstrKind::load_at:
    case InstrKind::local_product:
    case InstrKind::finish_reduce:
      return Access::Load;
    case InstrKind::store_linear:
    case InstrKind::store_at:
      return Access::Store;
    case InstrKind::add_at:
    case InstrKind::max_at:
    case InstrKind::hist_add:
    case InstrKind::look_back:
    case InstrKind::finish_scan:
      return Access::Change;
    case InstrKind::argsort_row:
      return place == 0 ? Access::Load : Access::Store;
    default:
      return Access::None;
  }
}

// The place of an instruction that touches a buffer.
struct Site {
  const Instr* instr = nullptr;
  std::size_t section = 0, place = 0;
};

// The element that a load or store names, by its base and kind or by its index.
ValueId element_of(const Instr& instr) {
  return is_linear(instr.kind) ? base_of(instr) : optional_operand(instr, 0);
}

// Compares the declarations of one kernel with its body.
class BodyChecker {
 public:
  BodyChecker(const KernelProgram& program, const Kernel& kernel)
      : program_(program), kernel_(kernel) {}

  std::string run() {
    for (std::size_t s = 0; s < kernel_.sections.size(); ++s) {
      const auto& instrs = kernel_.sections[s].instrs;
      for (std::size_t i = 0; i < instrs.size(); ++i) note(instrs[i], s, i);
    }
    compare("reads", buffers_in(kernel_.reads), loads_, stores_);
    compare("writes", buffers_in(kernel_.writes), stores_, {});
    if (kernel_.group_kind != GroupKind::Single) {
      for (const auto& [buffer, sites] : loads_) check_lanes(buffer, sites);
    }
    return complaint_;
  }

 private:
  using Sites = std::map<BufferIndex, std::vector<Site>>;

  void note(const Instr& instr, std::size_t section, std::size_t place) {
    for (std::size_t b = 0; b < instr.buffers.size(); ++b) {
      const Access access = access_of(instr.kind, b);
      const Site site{&instr, section, place};
      if (access == Access::Load) loads_[instr.buffers[b]].push_back(site);
      if (access == Access::Store) stores_[instr.buffers[b]].push_back(site);
      if (access == Access::Change) changes_[instr.buffers[b]].push_back(site);
    }
  }

  std::string name(BufferIndex b) const {
    return fmt::format("@{} ({})", b, program_.buffers.at(b).name);
  }

  std::map<BufferIndex, Version> buffers_in(const std::vector<Touch>& touches) {
    std::map<BufferIndex, Version> found;
    for (const Touch& touch : touches) {
      const auto [at, is_new] = found.try_emplace(touch.buffer, touch.version);
      if (!is_new && at->second != touch.version) {
        complain(fmt::format("{} is declared as {} and as {}", name(touch.buffer), at->second,
                             touch.version));
      }
    }
    return found;
  }

  // `also`: buffers that the kernel may declare, too, because it stores only a part of them.
  void compare(const char* what, const std::map<BufferIndex, Version>& declared,
               const Sites& touched, const Sites& also) {
    for (const Sites* sites : {&touched, &std::as_const(changes_)}) {
      for (const auto& [buffer, unused] : *sites) {
        if (!declared.contains(buffer)) complain(fmt::format("{} {} unsaid", what, name(buffer)));
      }
    }
    for (const auto& [buffer, unused] : declared) {
      const bool is_touched =
          touched.contains(buffer) || changes_.contains(buffer) || also.contains(buffer);
      if (!is_touched) complain(fmt::format("says that it {} {}", what, name(buffer)));
    }
  }

  // If a kernel loads and stores a buffer, each lane must load its own element, before any lane
  // stores.
  void check_lanes(BufferIndex buffer, const std::vector<Site>& loads) {
    if (changes_.contains(buffer)) {
      return complain(fmt::format("loads {} which it changes", name(buffer)));
    }
    const auto stores = stores_.find(buffer);
    if (stores == stores_.end()) return;
    for (const Site& load : loads) {
      for (const Site& store : stores->second) {
        const bool is_own = load.section == store.section && load.place < store.place &&
                            is_linear(load.instr->kind) == is_linear(store.instr->kind) &&
                            element_of(*load.instr) == element_of(*store.instr);
        if (!is_own) {
          return complain(fmt::format("loads elements of {} that other lanes store", name(buffer)));
        }
      }
    }
  }

  void complain(std::string what) {
    if (complaint_.empty()) complaint_ = kernel_.info.symbol + ": " + std::move(what);
  }

  const KernelProgram& program_;
  const Kernel& kernel_;
  Sites loads_, stores_, changes_;
  std::string complaint_;
};

class EntryChecker {
 public:
  EntryChecker(const KernelProgram& program, rt::EntryKind kind) : program_(program), kind_(kind) {
    for (const StepTouch& touch : program.step_touches) touches_[touch.step].push_back(touch);
  }

  std::string run() {
    Contents contents;
    contents.reserve(program_.buffers.size());
    for (const rt::BufferInfo& buffer : program_.buffers) {
      contents.push_back(given_version(buffer));
    }
    const auto entry = static_cast<std::size_t>(kind_);
    steps(program_.entries[entry].steps, contents);
    for (const Touch& result : program_.results[entry]) {
      expect(contents, result.buffer, result.version, "the end");
    }
    return complaint_;
  }

 private:
  using Steps = std::vector<rt::Step>;

  void steps(const Steps& list, Contents& contents) {
    for (const rt::Step& step : list) {
      if (!complaint_.empty()) return;
      run_step(step, contents);
    }
  }

  void run_step(const rt::Step& step, Contents& contents) {
    switch (step.kind) {
      case rt::StepKind::Launch: {
        const Kernel& kernel = program_.kernels.at(step.index);
        for (const Touch& read : kernel.reads) {
          expect(contents, read.buffer, read.version,
                 fmt::format("{} ({})", kernel.info.symbol, fmt::join(kernel.info.fused, ", ")));
        }
        for (const Touch& write : kernel.writes) contents.at(write.buffer) = write.version;
        return;
      }
      case rt::StepKind::Zero:
        contents.at(step.index) = kZeros;
        return;
      case rt::StepKind::Copy:
        contents.at(step.index) = contents.at(step.index2);
        return;
      case rt::StepKind::CheckHost:
        return;
      case rt::StepKind::If:
        return branch(step, contents);
      case rt::StepKind::For:
      case rt::StepKind::While:
        return loop(step, contents);
      case rt::StepKind::Collective:
        return collective(step, contents);
    }
  }

  // Touches are in the order of the step's buffers: the buffer that it sends, then its scalars.
  bool names_what_is_declared(const rt::Step& step) {
    const std::vector<StepTouch>& touches = touches_of(step);
    if (touches.empty() || touches.front().buffer != step.index2) return false;
    return std::ranges::equal(std::span(touches).subspan(1), step.scalars, {}, &StepTouch::buffer);
  }

  void collective(const rt::Step& step, Contents& contents) {
    if (!names_what_is_declared(step) && complaint_.empty()) {
      complaint_ =
          fmt::format("{}: the collective that makes @{} names other buffers than declared",
                      entry_name(kind_), step.index);
    }
    for (const StepTouch& touch : touches_of(step)) {
      if (touch.first == kNothing) {
        contents.at(touch.buffer) = touch.made;
      } else {
        expect(contents, touch.buffer, touch.first, "a collective");
        contents.at(step.index) = touch.made;
      }
    }
  }

  const std::vector<StepTouch>& touches_of(const rt::Step& step) { return touches_[step.index]; }

  void branch(const rt::Step& step, Contents& contents) {
    expect_something(contents, step.index);
    Contents other = contents;
    steps(step.body, contents);
    steps(step.orelse, other);
    for (const StepTouch& touch : touches_of(step)) {
      expect(contents, touch.buffer, touch.first, "the end of a branch");
      expect(other, touch.buffer, touch.second, "the end of a branch");
      contents.at(touch.buffer) = other.at(touch.buffer) = touch.made;
    }
    for (std::size_t b = 0; b < contents.size(); ++b) {
      if (contents[b] != other[b]) contents[b] = kNothing;
    }
  }

  // The next round finds what this round leaves only if the loop carries it.
  void loop(const rt::Step& step, Contents& contents) {
    for (const StepTouch& touch : touches_of(step)) {
      if (touch.buffer != step.index) {
        expect(contents, touch.buffer, touch.first, "the beginning of a loop");
      }
    }
    // A round finds what was there before the first round if rounds leave the same, or what the
    // loop
    // carries.
    for (const auto& [b, left] : left_by_rounds(step)) {
      if (contents.at(b) != left) contents.at(b) = kNothing;
    }
    for (const StepTouch& touch : touches_of(step)) contents.at(touch.buffer) = touch.made;
    steps(step.cond, contents);
    if (step.kind == rt::StepKind::While) expect_something(contents, step.index);
    Contents round = contents;
    steps(step.body, round);
    for (const StepTouch& touch : touches_of(step)) {
      if (touch.buffer != step.index) {
        expect(round, touch.buffer, touch.second, "the end of a round");
      }
    }
  }

  // What a list of steps leaves in each buffer that it writes. kNothing if that depends on the
  // data.
  using Left = std::map<BufferIndex, Version>;

  const Left& left_by_rounds(const rt::Step& step) {
    const auto [at, is_new] = left_.try_emplace(&step);
    if (is_new) {
      Left left;
      for (const Steps* list : {&step.cond, &step.body}) leave(*list, left);
      at->second = std::move(left);
    }
    return at->second;
  }

  void leave(const Steps& list, Left& left) {
    for (const rt::Step& step : list) {
      switch (step.kind) {
        case rt::StepKind::Launch:
          for (const Touch& write : program_.kernels.at(step.index).writes)
            left[write.buffer] = write.version;
          break;
        case rt::StepKind::Zero:
          left[step.index] = kZeros;
          break;
        case rt::StepKind::CheckHost:
          break;
        case rt::StepKind::If:
          leave_one_of(step, left);
          break;
        case rt::StepKind::For:
        case rt::StepKind::While:  // may run no round
          for (const auto& [b, version] : left_by_rounds(step)) {
            const auto [before, is_new] = left.try_emplace(b, version);
            if (before->second != version) before->second = kNothing;
          }
          break;
        default:  // copies and collectives leave unknown contents
          left[step.index] = kNothing;
      }
      const bool has_inner = step.kind != rt::StepKind::Launch && step.kind != rt::StepKind::Zero &&
                             step.kind != rt::StepKind::Copy &&
                             step.kind != rt::StepKind::CheckHost;
      if (!has_inner) continue;
      for (const StepTouch& touch : touches_of(step)) left[touch.buffer] = touch.made;
    }
  }

  void leave_one_of(const rt::Step& step, Left& left) {
    Left first, second;
    leave(step.body, first);
    leave(step.orelse, second);
    for (const auto& [b, version] : first) {
      const auto other = second.find(b);
      const auto before = left.find(b);
      const Version otherwise = other != second.end()  ? other->second
                                : before != left.end() ? before->second
                                                       : version;
      left[b] = otherwise == version ? version : kNothing;
    }
    for (const auto& [b, version] : second) {
      if (first.contains(b)) continue;
      const auto [before, is_new] = left.try_emplace(b, version);
      if (before->second != version) before->second = kNothing;
    }
  }

  void expect(const Contents& contents, BufferIndex buffer, Version version,
              const std::string& who) {
    const Version found = contents.at(buffer);
    if (!complaint_.empty() || (found == version && found != kNothing)) return;
    complaint_ = fmt::format("{}: {} needs {} in @{} ({}), where {} lies", entry_name(kind_), who,
                             version, buffer, program_.buffers[buffer].name, found);
  }

  void expect_something(const Contents& contents, BufferIndex buffer) {
    if (!complaint_.empty() || contents.at(buffer) != kNothing) return;
    complaint_ = fmt::format("{}: nobody has written the condition @{}", entry_name(kind_), buffer);
  }

  const KernelProgram& program_;
  rt::EntryKind kind_;
  std::map<BufferIndex, std::vector<StepTouch>> touches_;
  std::map<const rt::Step*, Left> left_;
  std::string complaint_;
};

}  // namespace

Version given_version(const rt::BufferInfo& buffer) {
  constexpr Version kGiven = 1U << 31;
  constexpr int kRoleShift = 24;
  const bool is_given =
      buffer.role != rt::BufferRole::Workspace && buffer.role != rt::BufferRole::StateNext;
  if (!is_given) return kNothing;
  const auto role =
      buffer.role == rt::BufferRole::StateInPlace ? rt::BufferRole::State : buffer.role;
  return kGiven | static_cast<Version>(role) << kRoleShift | buffer.role_index;
}

std::string first_version_complaint(const KernelProgram& program) {
  for (const Kernel& kernel : program.kernels) {
    if (std::string found = BodyChecker(program, kernel).run(); !found.empty()) return found;
  }
  for (std::size_t i = 0; i < rt::kNumEntries; ++i) {
    if (!program.entries[i].present) continue;
    std::string found = EntryChecker(program, static_cast<rt::EntryKind>(i)).run();
    if (!found.empty()) return found;
  }
  return {};
}

void check_versions(const KernelProgram& program, const std::string& stage) {
  const std::string complaint = first_version_complaint(program);
  if (complaint.empty()) return;
  InternalError error(InternalErrorKind::Bug, complaint, "codegen/kir/check_versions.cpp");
  error.attach(stage, print(program));
  throw error;
}

}  // namespace cinch::kir
