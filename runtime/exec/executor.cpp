// An EntryRun walks the steps of a call. Its position in nested steps is kept on a stack, so that
// it can stop at any step and go on later. Status words are read after each launch, so that no
// kernel uses data that a failed check should protect.
#include "runtime/exec/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/collective/join_ranks.h"
#include "runtime/core/sanitizer.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::rt {
namespace {

constexpr std::int64_t kMoveChunkBytes = std::int64_t{1} << 20;
// Limit of steps and rounds of loops in one call: the call ends whatever the bounds are.
constexpr std::int64_t kMaxSteps = std::int64_t{1} << 28;

}  // namespace

// The padding is intended: status and counters have cache lines of their own.
class EntryRun {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  // Stop: a non-finite value was found. Meet: a collective comes next.
  enum class Next { Go, Stop, Meet };

  EntryRun(const ProgramImage& image, std::vector<KernelFunction> kernels, TaskRunner& runner,
           const ExecutorOptions& options)
      : image_(image), kernels_(std::move(kernels)), runner_(runner), options_(options) {}

  void set_kernels(std::vector<KernelFunction> kernels) { kernels_ = std::move(kernels); }

  Status begin(EntryKind kind, const CallInputs& inputs) {
    inputs_ = inputs;
    entry_ = &image_.entries[static_cast<std::size_t>(kind)];
    cancelled_ = options_.cancelled;
    std::ranges::fill(status_, 0U);
    std::ranges::fill(counters_, 0U);
    accesses_ = {};
    num_steps_ = 0;
    frames_.clear();
    rounds_.clear();
    sizes_.clear();
    for (HostExprId id : image_.size_exprs) {
      const auto value = TRY(image_.info.exprs->eval(id, inputs_.env));
      sizes_.push_back(value.bits);
    }
    args_ = {inputs_.buffers.data(), sizes_.data(), inputs_.params.data(),
             inputs_.draw.data(),    status_,       image_.counts_accesses ? counters_ : nullptr};
    const BufferIndex narrow = inputs_.narrow.buffer;
    parts_.begin(inputs_.narrow,
                 narrow != kNoIndex && image_.buffers[narrow].role == BufferRole::Output,
                 inputs_.buffers);
    frames_.push_back({entry_->steps});
    return Ok{};
  }

  // Runs up to the next collective, or to the end (Go).
  Result<Next> resume() {
    while (!frames_.empty()) {
      if (++num_steps_ > kMaxSteps) {
        return fail(ErrorKind::Unavailable, fmt::format("{}: its loops take more than {} steps",
                                                        image_.info.name, kMaxSteps));
      }
      const auto next = has_ended(frames_.back()) ? leave() : run_next();
      if (!next || *next != Next::Go) return next;
    }
    return Next::Go;
  }

  const CollectiveCall& meeting() const { return meeting_; }
  AccessCounts take_accesses() { return std::move(accesses_); }

  std::vector<std::int64_t> loop_rounds() const {
    std::vector<std::int64_t> rounds;
    if (entry_ != nullptr) add_rounds(entry_->steps, rounds);
    return rounds;
  }

 private:
  void add_rounds(std::span<const Step> steps, std::vector<std::int64_t>& rounds) const {
    for (const Step& step : steps) {
      if (step.kind == StepKind::While || step.kind == StepKind::For) {
        const auto known = std::ranges::find(rounds_, &step, &LoopRounds::loop);
        rounds.push_back(known == rounds_.end() ? 0 : known->count);
      }
      for (const auto* held : {&step.cond, &step.body, &step.orelse}) add_rounds(*held, rounds);
    }
  }

  void note_round(const Step* loop) {
    auto known = std::ranges::find(rounds_, loop, &LoopRounds::loop);
    if (known == rounds_.end()) known = rounds_.insert(known, {loop, 0});
    ++known->count;
  }

  // Steps under way: of the entry, of a branch, of a loop's body or of its condition.
  struct Frame {
    std::span<const Step> steps;
    std::size_t at = 0;
    const Step* loop = nullptr;
    std::int64_t round = 0, end = 0;
    bool is_condition = false;
  };

  struct LoopRounds {
    const Step* loop = nullptr;
    std::int64_t count = 0;
  };

  bool is_cancelled() const { return cancelled_ != nullptr && *cancelled_; }
  static bool has_ended(const Frame& frame) { return frame.at == frame.steps.size(); }

  Result<Next> run_next() {
    if (is_cancelled()) return fail(ErrorKind::Cancelled, "cancelled");
    Frame& top = frames_.back();
    if (frames_.size() == 1 && top.at == entry_->commit_step) cancelled_ = nullptr;
    const Step& step = top.steps[top.at];
    // Launches do not run side by side if accesses are counted: counters belong to one launch at a
    // time.
    const std::size_t count = step.kind == StepKind::Launch && step.index2 != kNoIndex &&
                                      runner_.threads() > 1 && !image_.counts_accesses
                                  ? step.index2
                                  : 1;
    const auto steps = top.steps.subspan(top.at, count);
    top.at += count;
    return count > 1 ? launch_beside(steps) : run_step(step);
  }

  Result<Next> run_step(const Step& step) {
    switch (step.kind) {
      case StepKind::Launch:
        return launch(step.index);
      case StepKind::Zero:
        return zero(step.index);
      case StepKind::Copy:
        return copy(step.index, step.index2);
      case StepKind::CheckHost:
        if (TRY(image_.info.exprs->eval(step.expr, inputs_.env)).as_bool()) return Next::Go;
        return fail(ErrorKind::CheckFailed, "this does not hold for " + shape_text(inputs_.env) +
                                                ": " + image_.messages[step.index]);
      case StepKind::If:
        frames_.push_back({is_true(step.index) ? step.body : step.orelse});
        return Next::Go;
      case StepKind::While:
        return enter_while(step);
      case StepKind::For:
        return enter_for(step);
      case StepKind::Collective:
        return meet(step);
    }
    return fail(ErrorKind::Internal, "a step of an unknown kind");
  }

  Result<std::int64_t> evaluate(HostExprId id) const {
    return image_.info.exprs->eval_int(id, inputs_.env);
  }

  void run_groups(std::uint32_t index, std::uint64_t begin, std::uint64_t end) CINCH_CALLS_KERNELS {
    const KernelInfo& kernel = image_.kernels[index];
    if (!parts_.takes_part(kernel)) return kernels_[index](&args_, begin, end);
    parts_.run(kernel, kernels_[index], args_, begin, end);
  }

  Result<Next> launch(std::uint32_t index) {
    const auto groups = TRY(kernel_groups(image_, index, inputs_.env));
    if (groups == 0) return Next::Go;
    const auto num_groups = static_cast<std::uint64_t>(groups);
    const std::uint64_t per_task = groups_per_task(
        {image_.kernels[index], num_groups, runner_.threads(), *image_.info.exprs, inputs_.env},
        options_);
    const std::uint64_t num_tasks = (num_groups + per_task - 1) / per_task;
    const auto run_task = [&](std::uint64_t task) CINCH_CALLS_KERNELS {
      const std::uint64_t begin = task * per_task;
      run_groups(index, begin, std::min(begin + per_task, num_groups));
    };
    CINCH_TRY(runner_.run(num_tasks, cancelled_, run_task));
    if (image_.counts_accesses) note_launch(index);
    return check_status();
  }

  // Runs each launch as one task.
  Result<Next> launch_beside(std::span<const Step> steps) {
    num_groups_.clear();
    for (const Step& step : steps) {
      const auto groups = TRY(kernel_groups(image_, step.index, inputs_.env));
      num_groups_.push_back(static_cast<std::uint64_t>(groups));
    }
    const auto run_task = [&](std::uint64_t task) CINCH_CALLS_KERNELS {
      if (num_groups_[task] > 0) run_groups(steps[task].index, 0, num_groups_[task]);
    };
    CINCH_TRY(runner_.run(steps.size(), cancelled_, run_task));
    return check_status();
  }

  void note_launch(std::uint32_t index) {
    const std::uint64_t read = (counters_[0] + 7) / 8, written = (counters_[1] + 7) / 8;
    counters_[0] = counters_[1] = 0;
    accesses_.kernels.resize(image_.kernels.size());
    AccessCounts::Kernel& kernel = accesses_.kernels[index];
    ++kernel.launches;
    kernel.bytes_read += read;
    kernel.bytes_written += written;
    note_bytes(read, written);
  }

  void note_bytes(std::uint64_t read, std::uint64_t written) {
    accesses_.bytes_read += read;
    accesses_.bytes_written += written;
  }

  // Which tasks ran before a failing one ended differs between runs. Whether some check failed, or
  // a non-finite value occurred, does not. Of the messages of one launch the lowest one wins.
  Result<Next> check_status() const {
    if (status_[kStatusFlags] & kFlagNonFinite) return Next::Stop;
    const std::uint32_t failed = status_[kStatusFailed];
    if (failed == 0) return Next::Go;
    if (failed > image_.messages.size()) {
      return fail(ErrorKind::Internal, "a kernel failed with a number that stands for no message");
    }
    return fail(ErrorKind::CheckFailed, image_.messages[failed - 1]);
  }

  // Runs move(begin, bytes) over chunks of `size_bytes` bytes.
  template <typename Move>
  Result<Next> move_chunks(std::int64_t size_bytes, const Move& move) {
    const auto num_tasks =
        static_cast<std::uint64_t>((size_bytes + kMoveChunkBytes - 1) / kMoveChunkBytes);
    const Status status = runner_.run(num_tasks, cancelled_, [&](std::uint64_t task) {
      const auto begin = static_cast<std::int64_t>(task) * kMoveChunkBytes;
      move(begin, std::min(kMoveChunkBytes, size_bytes - begin));
    });
    CINCH_TRY(status);
    return Next::Go;
  }

  std::uint8_t* bytes_of(BufferIndex buffer) const {
    return static_cast<std::uint8_t*>(inputs_.buffers[buffer]);
  }

  Result<Next> zero(BufferIndex buffer) {
    if (image_.counts_accesses) note_bytes(0, memory_of(buffer).size());
    return move_chunks(inputs_.buffer_bytes[buffer],
                       [to = bytes_of(buffer)](std::int64_t begin, std::int64_t bytes) {
                         std::memset(to + begin, 0, static_cast<std::size_t>(bytes));
                       });
  }

  Result<Next> copy(BufferIndex to_buffer, BufferIndex from_buffer) {
    // The sizes have the same formula, but a field of a payload may be shorter.
    const std::int64_t size_bytes =
        std::min(inputs_.buffer_bytes[to_buffer], inputs_.buffer_bytes[from_buffer]);
    if (image_.counts_accesses)
      note_bytes(memory_of(from_buffer).size(), memory_of(to_buffer).size());
    return move_chunks(size_bytes, [to = bytes_of(to_buffer), from = bytes_of(from_buffer)](
                                       std::int64_t begin, std::int64_t bytes) {
      std::memcpy(to + begin, from + begin, static_cast<std::size_t>(bytes));
    });
  }

  std::span<std::uint8_t> memory_of(BufferIndex buffer) const {
    return {bytes_of(buffer), static_cast<std::size_t>(inputs_.buffer_bytes[buffer])};
  }

  Result<Next> meet(const Step& step) {
    const BufferInfo& to = image_.buffers[step.index];
    meeting_ = {step.collective, to.dtype, memory_of(step.index2), memory_of(step.index)};
    const auto read = [this](BufferIndex scalar) -> Result<std::uint32_t> {
      std::uint32_t value = 0;
      std::memcpy(&value, bytes_of(scalar), sizeof value);
      return value;
    };
    CINCH_TRY(take_scalars(step.scalars, to.storage_bits, read, meeting_));
    if (is_counted(step.collective.kind)) meeting_.received = memory_of(step.scalars.back());
    meeting_.groups = TRY(rank_groups(image_, step.expr, step.expr2, inputs_.env));
    if (step.message != kNoIndex) meeting_.place = image_.messages[step.message];
    return Next::Meet;
  }

  bool is_true(BufferIndex buffer) const { return *bytes_of(buffer) != 0; }

  Result<Next> enter_while(const Step& step) {
    const auto at_most = TRY(evaluate(step.expr));
    // An empty loop leaves its condition as it is.
    if (at_most > 0 && !(step.cond.empty() && step.body.empty())) {
      frames_.push_back({step.cond, 0, &step, 0, at_most, true});
    }
    return Next::Go;
  }

  Result<Next> enter_for(const Step& step) {
    const auto begin = TRY(evaluate(step.expr));
    const auto end = TRY(evaluate(step.expr2));
    if (begin < end) {
      // Of an empty loop only the last round can be seen.
      frames_.push_back({step.body, 0, &step, step.body.empty() ? end - 1 : begin, end});
      set_round(frames_.back());
    }
    return Next::Go;
  }

  void set_round(const Frame& frame) {
    note_round(frame.loop);
    std::memcpy(bytes_of(frame.loop->index), &frame.round, sizeof frame.round);
  }

  // The frame's steps have run: goes on to the next part of its loop, or leaves it.
  Result<Next> leave() {
    Frame& top = frames_.back();
    const bool goes_in = top.is_condition && is_true(top.loop->index);
    const bool goes_round = top.loop != nullptr && !top.is_condition && ++top.round < top.end;
    if (!goes_in && !goes_round) {
      frames_.pop_back();
      return Next::Go;
    }
    if (is_cancelled()) return fail(ErrorKind::Cancelled, "cancelled");
    top.at = 0;
    if (top.loop->kind == StepKind::For) {
      set_round(top);
    } else {
      if (goes_in) note_round(top.loop);
      top.is_condition = !goes_in;
      top.steps = goes_in ? top.loop->body : top.loop->cond;
    }
    return Next::Go;
  }

  const ProgramImage& image_;
  std::vector<KernelFunction> kernels_;
  TaskRunner& runner_;
  const ExecutorOptions& options_;
  // Data of the running call.
  CallInputs inputs_;
  const Entry* entry_ = nullptr;
  const std::atomic<bool>* cancelled_ = nullptr;  // null once a state has been changed in place
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> num_groups_;  // of launches that run side by side
  KernelArgs args_{};
  PartRunner parts_;
  alignas(64) std::uint32_t status_[kStatusWords] = {};
  alignas(64) std::uint64_t counters_[2] = {};  // of the running launch, in bits
  AccessCounts accesses_;
  std::int64_t num_steps_ = 0;  // including the ends of rounds
  std::vector<Frame> frames_;
  std::vector<LoopRounds> rounds_;  // of loops that ran
  CollectiveCall meeting_{};
};

Executor::Executor(const ProgramImage& image, std::vector<KernelFunction> kernels,
                   TaskRunner& runner, ExecutorOptions options)
    : options_(options),
      run_(std::make_unique<EntryRun>(image, std::move(kernels), runner, options_)) {}

Executor::~Executor() = default;

void Executor::set_kernels(std::vector<KernelFunction> kernels) {
  run_->set_kernels(std::move(kernels));
}

Status Executor::begin(EntryKind entry, const CallInputs& inputs) {
  return run_->begin(entry, inputs);
}

Result<RunState> Executor::resume() {
  const auto next = TRY(run_->resume());
  return next == EntryRun::Next::Meet   ? RunState::Meets
         : next == EntryRun::Next::Stop ? RunState::NonFinite
                                        : RunState::Ended;
}

const CollectiveCall& Executor::meeting() const {
  return run_->meeting();
}

std::vector<std::int64_t> Executor::loop_rounds() const {
  return run_->loop_rounds();
}

AccessCounts Executor::take_accesses() {
  return run_->take_accesses();
}

Result<CallOutcome> Executor::run(EntryKind entry, const CallInputs& inputs) {
  CINCH_TRY(begin(entry, inputs));
  const auto state = TRY(resume());
  if (state == RunState::Meets) return fail(ErrorKind::Internal, "a collective without ranks");
  return CallOutcome{state == RunState::NonFinite, take_accesses()};
}

}  // namespace cinch::rt
