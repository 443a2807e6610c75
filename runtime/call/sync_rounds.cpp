// The collectives of a `sync`, known before it runs; see entries.h.
#include "runtime/call/entries.h"

#include <algorithm>

#include "runtime/image/image.h"

namespace cinch::rt {
namespace {

using Steps = std::vector<Step>;

// Limit of steps, including those of all rounds of loops; no plan has more exchanges.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 16;

const Steps& steps_of(const ProgramImage& image) {
  return image.entries[static_cast<std::size_t>(EntryKind::Sync)].steps;
}

bool has_collective(const Steps& steps) {
  return std::ranges::any_of(steps, [](const Step& step) {
    return step.kind == StepKind::Collective || has_collective(step.cond) ||
           has_collective(step.body) || has_collective(step.orelse);
  });
}

bool is_fixed(const ProgramImage& image, HostExprId expr) {
  const HostExprPool& exprs = image.info.exprs;
  return !exprs.depends_on(expr, HostOp::Param) && !exprs.depends_on(expr, HostOp::Step);
}

bool are_fixed(const ProgramImage& image, const Steps& steps) {
  return std::ranges::all_of(steps, [&](const Step& step) {
    if (step.kind == StepKind::Collective) {
      return !is_routed(step.collective.kind) &&
             is_fixed(image, image.buffers[step.index].size_bytes) &&
             is_fixed(image, image.buffers[step.index2].size_bytes);
    }
    if (step.kind == StepKind::For && has_collective(step.body)) {
      return is_fixed(image, step.expr) && is_fixed(image, step.expr2) &&
             are_fixed(image, step.body);
    }
    return !has_collective(step.cond) && !has_collective(step.body) && !has_collective(step.orelse);
  });
}

class Rounds {
 public:
  Rounds(const ProgramImage& image, const HostEnv& env) : image_(image), env_(env) {}

  Status add(const Steps& steps) {
    for (const Step& step : steps) {
      Status status = Ok{};
      if (++num_steps_ > kMostSteps) {
        return fail(ErrorKind::Unavailable,
                    image_.info.name + ": its loops take more exchanges than a plan has");
      }
      if (step.kind == StepKind::Collective) status = add_round(step);
      if (step.kind == StepKind::For && has_collective(step.body)) status = add_loop(step);
      if (!status) return status;
    }
    return Ok{};
  }

  std::vector<SyncRound> take() { return std::move(rounds_); }

 private:
  Result<std::int64_t> evaluate(HostExprId expr) const {
    return image_.info.exprs.eval_int(expr, env_);
  }

  Status add_round(const Step& step) {
    const auto sent = buffer_bytes(image_, step.index2, env_);
    CINCH_TRY(sent);
    const auto received = buffer_bytes(image_, step.index, env_);
    CINCH_TRY(received);
    rounds_.push_back({step.collective, image_.buffers[step.index].dtype,
                       static_cast<std::uint64_t>(*sent), static_cast<std::uint64_t>(*received)});
    return Ok{};
  }

  Status add_loop(const Step& step) {
    const auto begin = evaluate(step.expr);
    CINCH_TRY(begin);
    const auto end = evaluate(step.expr2);
    CINCH_TRY(end);
    for (std::int64_t i = *begin; i < *end; ++i) {
      CINCH_TRY(add(step.body));
    }
    return Ok{};
  }

  const ProgramImage& image_;
  const HostEnv& env_;
  std::vector<SyncRound> rounds_;
  std::int64_t num_steps_ = 0;
};

}  // namespace

bool has_fixed_rounds(const ProgramImage& image) {
  return are_fixed(image, steps_of(image));
}

Result<std::vector<SyncRound>> sync_rounds(const ProgramImage& image, const HostEnv& env) {
  Rounds rounds(image, env);
  CINCH_TRY(rounds.add(steps_of(image)));
  return rounds.take();
}

}  // namespace cinch::rt
