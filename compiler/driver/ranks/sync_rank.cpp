// Other data that ranks exchange use the same transport, between steps.
#include "compiler/driver/ranks/sync_rank.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>

#include "compiler/driver/codecs/gradient_file.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/process/interrupt.h"
#include "compiler/driver/process/progress.h"
#include "runtime/core/hash.h"

namespace cinch::driver {

namespace {

class SyncRank {
 public:
  SyncRank(const SyncRankOptions& options, const std::vector<rt::ConstTensorView>& gradients,
           rt::Transport& transport)
      : options_(options),
        gradients_(gradients),
        transport_(transport),
        session_(value_or_throw(rt::SyncSession::open(options.session, transport))) {
    for (const rt::ConstTensorView& gradient : gradients) {
      report_.updates.emplace_back(static_cast<std::size_t>(gradient.num_elems));
    }
    updates_.assign(report_.updates.begin(), report_.updates.end());
  }

  SyncReport run() {
    if (!options_.saved_states.empty()) {
      report_.restored = value_or_throw(session_->restore_states(options_.saved_states));
    }
    std::optional<Progress> progress;
    if (transport_.rank() == 0) progress.emplace("steps");
    for (std::uint64_t i = 0; i < options_.num_steps && !report_.was_stopped; ++i) {
      if (progress) progress->update(i, options_.num_steps);
      take_step(options_.first_step + i);
    }
    if (options_.saves_states) report_.saved_states = value_or_throw(session_->save_states());
    share_times();
    report_.relative_error = distance(mean(), joined(updates_)).relative_error;
    return std::move(report_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void take_step(std::uint64_t step) {
    if (*Cancellable::flag()) session_->ask_to_stop();
    const std::uint64_t before = transport_.sent_bytes();
    if (options_.ready_seconds.empty()) {
      value_or_throw(session_->step(gradients_, updates_, step));
    } else {
      step_behind_backward(step);
    }
    sent_bytes_ = transport_.sent_bytes() - before;
    report_.was_stopped = session_->is_asked_to_stop();
    const rt::TaskTimes& times = session_->times();
    // A digest as two halves, which doubles hold exactly.
    std::uint64_t digest = 0;
    for (const auto& update : report_.updates) {
      digest = hash64(update.data(), 4 * update.size(), digest);
    }
    const double own[3] = {(times.end - times.begin) * 1e3, static_cast<double>(digest >> 32),
                           static_cast<double>(digest & 0xffffffffU)};
    const std::vector<double> all = gather(own);
    double longest = 0;
    for (std::size_t rank = 0; rank < transport_.world(); ++rank) {
      longest = std::max(longest, all[3 * rank]);
      const bool is_same = all[3 * rank + 1] == own[1] && all[3 * rank + 2] == own[2];
      report_.same_bits = report_.same_bits && is_same;
    }
    report_.step_ms.push_back(longest);
  }

  // Waits, but returns early if the step has failed or somebody wants the command to end.
  void compute_until(Clock::time_point time) const {
    constexpr std::chrono::milliseconds kLook{20};
    for (auto now = Clock::now(); now < time; now = Clock::now()) {
      if (*Cancellable::flag() || session_->has_step_failed()) return;
      std::this_thread::sleep_until(std::min(time, now + kLook));
    }
  }

  // Simulates the backward pass by waiting.
  void step_behind_backward(std::uint64_t step) {
    const auto& ready = options_.ready_seconds;
    std::vector<std::uint32_t> order(ready.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t tensor) { return ready[tensor]; });
    const auto begin = Clock::now();
    value_or_throw(session_->begin_step(step));
    for (const std::uint32_t tensor : order) {
      compute_until(begin + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(ready[tensor])));
      if (!session_->set_ready(tensor, gradients_[tensor], updates_[tensor])) break;
    }
    if (*Cancellable::flag()) session_->ask_to_stop();
    value_or_throw(session_->finish_step());
  }

  void run_exchange(const rt::Exchange& exchange) {
    value_or_throw(rt::exchange_now(transport_, exchange, options_.session.timeout, "comparing"));
  }

  // Gathers several values from each rank, `sizes` by rank.
  std::vector<double> gather(std::span<const double> own, const std::vector<std::size_t>& sizes) {
    std::vector<rt::ByteRange> parts;
    std::uint64_t end = 0;
    for (const std::size_t size : sizes) {
      parts.push_back({end, size * sizeof(double)});
      end += size * sizeof(double);
    }
    std::vector<double> all(end / sizeof(double));
    rt::Exchange exchange{rt::ExchangeKind::AllGather};
    exchange.input = {reinterpret_cast<const std::uint8_t*>(own.data()), own.size_bytes()};
    exchange.output = {reinterpret_cast<std::uint8_t*>(all.data()), end};
    exchange.received = parts;
    run_exchange(exchange);
    return all;
  }
  std::vector<double> gather(std::span<const double> own) {
    return gather(own, std::vector<std::size_t>(transport_.world(), own.size()));
  }

  void share_times() {
    constexpr std::size_t kPerTask = 3, kPerStep = 4;
    const rt::TaskTimes& times = session_->times();
    // Tells all ranks about a signal since the last step.
    const double is_stopped = *Cancellable::flag() ? 1 : 0;
    std::vector<double> own = {times.begin, times.end, static_cast<double>(sent_bytes_),
                               is_stopped};
    own.insert(own.end(), times.ready.begin(), times.ready.end());
    for (const rt::TaskTime& task : times.tasks) {
      own.insert(own.end(), {task.begin, task.end, static_cast<double>(task.sent_bytes)});
    }
    const rt::Plan& plan = *options_.session.plan;
    std::vector<std::size_t> sizes;
    sizes.reserve(plan.ranks.size());
    for (const rt::RankPlan& rank : plan.ranks) {
      sizes.push_back(kPerStep + plan.tensors.size() + kPerTask * rank.tasks.size());
    }
    const std::vector<double> all = gather(own, sizes);
    const double* next = all.data();
    for (const rt::RankPlan& rank : plan.ranks) {
      rt::TaskTimes& of = report_.times.emplace_back();
      of.begin = next[0];
      of.end = next[1];
      report_.sent_bytes.push_back(static_cast<std::uint64_t>(next[2]));
      report_.was_stopped = report_.was_stopped || next[3] != 0;
      next += kPerStep;
      of.is_in_parts = !options_.ready_seconds.empty();
      of.ready.assign(next, next + plan.tensors.size());
      next += plan.tensors.size();
      for (std::size_t t = 0; t < rank.tasks.size(); ++t, next += kPerTask) {
        of.tasks.push_back({next[0], next[1], static_cast<std::uint64_t>(next[2])});
      }
    }
  }

  // All elements of all tensors.
  template <typename Views>
  static std::vector<float> joined(const Views& tensors) {
    std::vector<float> all;
    for (const auto& tensor : tensors) {
      const std::vector<float> values = to_f32({tensor.data, tensor.dtype, tensor.num_elems});
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  // The exact mean, as closely as f32 allows; computed in parts, so that time-outs do not expire.
  std::vector<float> mean() {
    constexpr std::size_t kPartBytes = 4 << 20;
    std::vector<float> sum = joined(gradients_);
    const std::span bytes(reinterpret_cast<std::uint8_t*>(sum.data()), 4 * sum.size());
    for (std::size_t begin = 0; begin < bytes.size(); begin += kPartBytes) {
      rt::Exchange exchange{rt::ExchangeKind::AllReduce};
      exchange.reduction = rt::RankReduction::Mean;
      exchange.output = bytes.subspan(begin, std::min(kPartBytes, bytes.size() - begin));
      exchange.input = exchange.output;
      run_exchange(exchange);
    }
    return sum;
  }

  const SyncRankOptions& options_;
  const std::vector<rt::ConstTensorView>& gradients_;
  rt::Transport& transport_;
  std::unique_ptr<rt::SyncSession> session_;
  std::uint64_t sent_bytes_ = 0;
  SyncReport report_;
  std::vector<rt::TensorView> updates_;  // the report's updates
};

}  // namespace

SyncReport run_sync_rank(const SyncRankOptions& options,
                         const std::vector<rt::ConstTensorView>& gradients,
                         rt::Transport& transport) {
  return SyncRank(options, gradients, transport).run();
}

}  // namespace cinch::driver
