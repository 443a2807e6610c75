// Bodies of plan_trials.h. How many steps are taken follows from times that all ranks share, and so
// is the same on all of them.
#include "runtime/autoplan/plan_trials.h"

#include <algorithm>
#include <limits>

#include "runtime/autoplan/median.h"

namespace cinch::rt {
namespace {

// After the one that meets memory which was never touched.
constexpr std::size_t kFirstSteps = 3;
constexpr double kMostSteps = 25;

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

  // Each a few times; then once more those that could be the fastest, the last one first, so that
  // what slows a machine down for a while meets others.
  Result<std::vector<double>> run() {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (Status status = take_steps(i, kFirstSteps); !status) {
        return tl::unexpected<Error>(status.error());
      }
    }
    const std::vector<std::size_t> close = close_plans();
    for (auto i = close.rbegin(); i != close.rend() && close.size() > 1; ++i) {
      const double share = options_.seconds / 2 / static_cast<double>(close.size());
      const double fitting = share / std::max(median(seconds_[*i]), 1e-6);
      const auto steps = static_cast<std::size_t>(std::clamp(fitting, 1.0, kMostSteps));
      if (Status status = take_steps(*i, steps); !status) {
        return tl::unexpected<Error>(status.error());
      }
    }
    std::vector<double> medians;
    medians.reserve(seconds_.size());
    for (const auto& of_plan : seconds_) medians.push_back(median(of_plan));
    return medians;
  }

 private:
  Status take_steps(std::size_t plan, std::size_t number) {
    SyncOptions session_options = options_.session;
    session_options.plan = plans_[plan];
    if (session_options.device) session_options.device->has_tensors = false;
    const auto session = SyncSession::open(session_options, transport_);
    if (!session) return tl::unexpected<Error>(session.error());
    double meeting = 0;
    Status status = take_largest(transport_, {&meeting, 1}, options_.session.timeout);
    for (std::size_t i = 0; i <= number && status; ++i) {
      status = (*session)->step(gradients_, updates_, options_.step);
      if (!status) return status;
      double seconds = (*session)->times().end - (*session)->times().begin;
      status = take_largest(transport_, {&seconds, 1}, options_.session.timeout);
      if (i == 0) continue;
      seconds_[plan].push_back(seconds);
      if (seconds > options_.clearly_slower * fastest_) break;
    }
    if (status) fastest_ = std::min(fastest_, median(seconds_[plan]));
    return status;
  }

  std::vector<std::size_t> close_plans() const {
    std::vector<std::size_t> close;
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
      if (median(seconds_[i]) <= options_.clearly_slower * fastest_) close.push_back(i);
    }
    return close;
  }

  std::span<const std::shared_ptr<const Plan>> plans_;
  std::span<const ConstTensorView> gradients_;
  const TrialOptions& options_;
  Transport& transport_;
  std::vector<std::vector<float>> outputs_;  // by tensor
  std::vector<TensorView> updates_;
  std::vector<std::vector<double>> seconds_;  // by plan: of each step
  double fastest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

Result<std::vector<double>> try_plans(std::span<const std::shared_ptr<const Plan>> plans,
                                      std::span<const ConstTensorView> gradients,
                                      const TrialOptions& options, Transport& transport) {
  return Trials(plans, gradients, options, transport).run();
}

}  // namespace cinch::rt
