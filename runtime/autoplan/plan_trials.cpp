// Bodies of measure.h. The number of steps follows from times that all ranks share, so it is
// the same on all of them.
#include "runtime/autoplan/measure.h"

#include <algorithm>
#include <limits>

namespace cinch::rt {
namespace {

// After a first step, which uses memory for the first time.
constexpr std::size_t kFirstSteps = 3;
constexpr double kMostSteps = 12;
constexpr std::size_t kTurns = 2;  // for those that could be the fastest

class Trials {
 public:
  Trials(std::span<const std::shared_ptr<const Plan>> plans,
         std::span<const ConstTensorView> gradients, const TrialOptions& options,
         Transport& transport)
      : plans_(plans),
        gradients_(gradients),
        options_(options),
        transport_(transport),
        seconds_(plans.size()) {
    for (const ConstTensorView& gradient : gradients) {
      outputs_.emplace_back(static_cast<std::size_t>(gradient.num_elems));
    }
    updates_.assign(outputs_.begin(), outputs_.end());
  }

  // Tries each plan a few times. Then tries those that could be the fastest again, in turns from
  // the last and from the first, so that a temporary slowdown of the machine does not hit the same
  // plan.
  Result<std::vector<double>> run() {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      CINCH_TRY(take_steps(i, kFirstSteps));
    }
    std::vector<std::size_t> close = close_plans();
    for (std::size_t turn = 0; turn < kTurns && close.size() > 1; ++turn) {
      std::ranges::reverse(close);
      CINCH_TRY(take_turn(close));
    }
    std::vector<double> medians;
    medians.reserve(seconds_.size());
    for (const auto& of_plan : seconds_) medians.push_back(median(of_plan));
    return medians;
  }

 private:
  Status take_turn(const std::vector<std::size_t>& close) {
    const double share = options_.seconds / 2 / static_cast<double>(kTurns * close.size());
    for (const std::size_t plan : close) {
      const double fitting = share / std::max(median(seconds_[plan]), 1e-6);
      const auto steps = static_cast<std::size_t>(std::clamp(fitting, 1.0, kMostSteps));
      CINCH_TRY(take_steps(plan, steps));
    }
    return Ok{};
  }

  // Compares fastest steps: a step that something else slowed down says nothing about the plan.
  bool is_clearly_slower(std::size_t plan) const {
    return std::ranges::min(seconds_[plan]) > options_.clearly_slower * fastest_;
  }

  Status take_steps(std::size_t plan, std::size_t number) {
    SyncOptions session_options = options_.session;
    session_options.plan = plans_[plan];
    if (session_options.device) session_options.device->has_tensors = false;
    const auto session = SyncSession::open(session_options, transport_);
    CINCH_TRY(session);
    double meeting = 0;
    Status status = take_largest(transport_, {&meeting, 1}, options_.session.timeout);
    for (std::size_t i = 0; i <= number && status; ++i) {
      status = (*session)->step(gradients_, updates_, options_.step);
      if (!status) return status;
      double seconds = (*session)->times().end - (*session)->times().begin;
      status = take_largest(transport_, {&seconds, 1}, options_.session.timeout);
      if (i == 0) continue;
      seconds_[plan].push_back(seconds);
      if (i > 1 && is_clearly_slower(plan)) break;
    }
    if (status) fastest_ = std::min(fastest_, median(seconds_[plan]));
    return status;
  }

  std::vector<std::size_t> close_plans() const {
    std::vector<std::size_t> close;
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      if (!is_clearly_slower(i)) close.push_back(i);
    }
    return close;
  }

  std::span<const std::shared_ptr<const Plan>> plans_;
  std::span<const ConstTensorView> gradients_;
  const TrialOptions& options_;
  Transport& transport_;
  std::vector<std::vector<float>> outputs_;  // by tensor
  std::vector<TensorView> updates_;
  std::vector<std::vector<double>> seconds_;  // by plan: seconds of each step
  double fastest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Result<std::vector<double>> try_plans(std::span<const std::shared_ptr<const Plan>> plans,
                                      std::span<const ConstTensorView> gradients,
                                      const TrialOptions& options, Transport& transport) {
  return Trials(plans, gradients, options, transport).run();
}

}  // namespace cinch::rt
