// Entries: what each call binds and may write, and what each kind of step needs.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/image/gpu_abi.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
namespace {

constexpr std::int64_t kFlagBytes = 1, kScalarBytes = 4, kRoundBytes = 8;

bool is_decode(EntryKind kind) {
  return kind == EntryKind::Decode || kind == EntryKind::DecodeAdd;
}

// Does the call bind such memory, or does the session hold it?
bool has_in_call(EntryKind kind, BufferRole role) {
  const bool is_sum = kind == EntryKind::Finish || kind == EntryKind::Sync;
  switch (role) {
    case BufferRole::Gradient:
      return kind == EntryKind::Encode || is_sum;
    case BufferRole::Output:
      return is_decode(kind) || is_sum;
    case BufferRole::Field:
      return kind == EntryKind::Encode || is_decode(kind);
    default:
      return true;
  }
}

// May a step write there? Gradients and payloads belong to the caller, and a state keeps its value
// until the call has succeeded.
bool may_write(EntryKind kind, BufferRole role) {
  if (role == BufferRole::Field) return !is_decode(kind);
  return role != BufferRole::Gradient && role != BufferRole::Constant && role != BufferRole::State;
}

class EntryChecks {
 public:
  EntryChecks(const ProgramImage& image, EntryKind kind, ImageChecks& checks)
      : image_(image),
        entry_(image.entries[static_cast<std::size_t>(kind)]),
        kind_(kind),
        checks_(checks),
        is_listed_(image.buffers.size(), false) {}

  void run() {
    const std::string place = fmt::format("entry {}", static_cast<std::size_t>(kind_));
    for (const BufferIndex buffer : entry_.buffers) {
      if (buffer >= image_.buffers.size()) return checks_.fault(place + ": no such buffer");
      require(!is_listed_[buffer], place, "a buffer twice");
      require(has_in_call(kind_, image_.buffers[buffer].role), place,
              "a buffer that the call does not have");
      is_listed_[buffer] = true;
    }
    require(entry_.commit_step == kNoIndex || entry_.commit_step < entry_.steps.size(), place,
            "no such step to commit at");
    check_steps(entry_.steps, place, 0);
  }

 private:
  using Place = const std::string&;

  void require(bool condition, Place place, const char* what) {
    checks_.require(condition, place, what);
  }

  void check_steps(const std::vector<Step>& steps, Place place, int depth) {
    if (depth > kMaxStepDepth) return checks_.fault(place + ": steps nest too deep");
    for (std::size_t i = 0; i < steps.size() && !checks_.has_fault(); ++i) {
      if (++num_steps_ > kMaxImageParts) return checks_.fault(place + ": too many steps");
      check_step(steps[i], fmt::format("{} step {}", place, i), depth);
      if (steps[i].kind == StepKind::Launch && steps[i].index2 != kNoIndex) {
        check_beside(std::span(steps).subspan(i), fmt::format("{} step {}", place, i));
      }
    }
  }

  // Checks launches that may run at the same time; the first one tells how many they are.
  void check_beside(std::span<const Step> steps, Place place) {
    const std::size_t count = steps.front().index2;
    if (count < 2 || count > steps.size()) {
      return checks_.fault(place + ": launches beside it that are not there");
    }
    for (const Step& step : steps.first(count)) {
      const bool is_sequential = step.kind == StepKind::Launch &&
                                 step.index < image_.kernels.size() &&
                                 image_.kernels[step.index].is_sequential;
      require(is_sequential, place, "runs beside a step other than a launch of a single task");
      require(&step == &steps.front() || step.index2 == kNoIndex, place,
              "launches beside one another twice");
    }
  }

  void check_step(const Step& step, Place place, int depth) {
    const bool is_control =
        step.kind == StepKind::If || step.kind == StepKind::While || step.kind == StepKind::For;
    require(is_control || (step.cond.empty() && step.body.empty() && step.orelse.empty()), place,
            "a plain step with steps inside");
    require((step.collective.kind != CollectiveKind::None) == (step.kind == StepKind::Collective),
            place, "a collective where none is due");
    require(step.scalars.size() == num_scalars(step.collective.kind), place,
            "a collective without the scalars of its kind");
    require(names_rank(step.collective.kind) ? step.message < image_.messages.size()
                                             : step.message == kNoIndex,
            place, "no such message");
    switch (step.kind) {
      case StepKind::Launch:
        return require(step.index < image_.kernels.size(), place, "no such kernel");
      case StepKind::Zero:
        return check_written(step.index, place);
      case StepKind::Copy:
        return check_copy(step, place);
      case StepKind::CheckHost:
        return check_host(step, place, depth);
      case StepKind::If:
        check_scalar(step.index, place, kFlagBytes);
        check_steps(step.body, place + " then", depth + 1);
        return check_steps(step.orelse, place + " else", depth + 1);
      case StepKind::While:
        check_scalar(step.index, place, kFlagBytes);
        check_bound(step.expr, place);
        check_steps(step.cond, place + " condition", depth + 1);
        return check_steps(step.body, place + " body", depth + 1);
      case StepKind::For:
        check_scalar(step.index, place, kRoundBytes);
        check_bound(step.expr, place);
        check_bound(step.expr2, place);
        return check_steps(step.body, place + " body", depth + 1);
      case StepKind::Collective:
        return check_collective(step, place);
    }
    checks_.fault(place + ": no such kind of step");
  }

  // Does the entry list the buffer?
  bool check_listed(BufferIndex buffer, Place place) {
    if (buffer >= image_.buffers.size()) {
      checks_.fault(place + ": no such buffer");
      return false;
    }
    require(is_listed_[buffer], place, "a buffer that the entry does not list");
    return true;
  }

  void check_written(BufferIndex buffer, Place place) {
    if (!check_listed(buffer, place)) return;
    require(may_write(kind_, image_.buffers[buffer].role), place,
            "a step that writes what is only read");
  }

  // Checks two buffers, of which the step writes one.
  bool check_pair(const Step& step, Place place) {
    check_written(step.index, place);
    if (!check_listed(step.index2, place) || checks_.has_fault()) return false;
    require(step.index != step.index2, place, "a buffer from itself");
    return true;
  }

  // The formulas must be the same: different ones could give different sizes.
  void check_copy(const Step& step, Place place) {
    if (!check_pair(step, place)) return;
    require(image_.buffers[step.index].size_bytes == image_.buffers[step.index2].size_bytes, place,
            "a copy between buffers of different sizes");
  }

  void check_collective(const Step& step, Place place) {
    const CollectiveInfo& collective = step.collective;
    const bool joins = collective.kind == CollectiveKind::AllReduce ||
                       collective.kind == CollectiveKind::ReduceScatter;
    require(kind_ == EntryKind::Sync, place, "a collective outside of `sync`");
    require(joins == (collective.reduction != RankReduction::None), place, "no such reduction");
    if (!check_pair(step, place)) return;
    const BufferInfo &to = image_.buffers[step.index], &from = image_.buffers[step.index2];
    require(
        to.dtype == from.dtype && to.storage_bits == from.storage_bits && to.storage_bits % 8 == 0,
        place, "a collective between types");
    const bool keeps_size = collective.kind == CollectiveKind::AllReduce ||
                            collective.kind == CollectiveKind::Broadcast ||
                            collective.kind == CollectiveKind::BroadcastFrom ||
                            collective.kind == CollectiveKind::SendReceive;
    require(!keeps_size || to.size_bytes == from.size_bytes, place,
            "a collective between buffers of different sizes");
    const bool are_own = to.role == BufferRole::Workspace && from.role == BufferRole::Workspace;
    require(are_own || !is_gpu_image(image_), place, "a collective on what is a call's");
    for (const BufferIndex scalar : step.scalars) check_scalar(scalar, place, kScalarBytes);
    if (!step.expr.is_valid() && !step.expr2.is_valid()) return;
    require(collective.kind == CollectiveKind::AllToAll, place, "a collective without groups");
    checks_.check_int(step.expr, place);
    checks_.check_int(step.expr2, place);
  }

  void check_host(const Step& step, Place place, int depth) {
    if (checks_.check_formula(step.expr, place)) {
      require(image_.info.exprs->type(step.expr) == HostType::Bool, place, "no condition");
      if (depth > 0) check_slot(step.expr, place);
    }
    require(step.index < image_.messages.size(), place, "no such message");
  }

  void check_bound(HostExprId bound, Place place) {
    checks_.check_int(bound, place);
    check_slot(bound, place);
  }

  // Checks sizes that a GPU reads without the host.
  void check_slot(HostExprId expr, Place place) {
    if (!is_gpu_image(image_)) return;
    require(std::ranges::find(image_.size_exprs, expr) != image_.size_exprs.end(), place,
            "a bound or condition that is not among the sizes");
  }

  // Checks a buffer that the host, or a step on a GPU, reads or writes as one value.
  void check_scalar(BufferIndex index, Place place, std::int64_t size_bytes) {
    if (!check_listed(index, place)) return;
    const BufferInfo& buffer = image_.buffers[index];
    require(buffer.storage_bits == 8 * size_bytes, place, "a scalar buffer of another width");
    require(buffer.role == BufferRole::Workspace, place, "a scalar buffer of a role");
    require(checks_.is_number(buffer.size_bytes, size_bytes), place,
            "a scalar buffer of another size");
  }

  const ProgramImage& image_;
  const Entry& entry_;
  const EntryKind kind_;
  ImageChecks& checks_;
  std::vector<bool> is_listed_;
  std::size_t num_steps_ = 0;
};

}  // namespace

void check_entries(const ProgramImage& image, ImageChecks& checks) {
  for (std::size_t kind = 0; kind < kNumEntries && !checks.has_fault(); ++kind) {
    EntryChecks(image, static_cast<EntryKind>(kind), checks).run();
  }
}

}  // namespace cinch::rt
