// Bodies of sync_rank.h. What the ranks tell each other besides the plan goes over the same
// transport, between steps.
#include "compiler/driver/sync_rank.h"

#include <algorithm>

#include "compiler/driver/exit_code.h"
#include "compiler/driver/gradient_file.h"
#include "compiler/driver/interrupt.h"
#include "runtime/core/hash.h"

namespace cinch::driver {

namespace {

class SyncRank {
 public:
  SyncRank(const SyncRankOptions& options, const rt::NpyArray& gradient, rt::Transport& transport)
      : options_(options),
        gradient_(view_of(gradient)),
        transport_(transport),
        session_(value_or_throw(rt::SyncSession::open(options.session, transport))) {
    report_.update.resize(static_cast<std::size_t>(gradient_.num_elems));
  }

  SyncReport run() {
    for (std::uint64_t i = 0; i < options_.num_steps && !report_.was_stopped; ++i) {
      take_step(options_.first_step + i);
    }
    share_times();
    report_.relative_error = distance(mean(), report_.update).relative_error;
    return std::move(report_);
  }

 private:
  void take_step(std::uint64_t step) {
    if (*Cancellable::flag()) session_->ask_to_stop();
    const std::uint64_t before = transport_.sent_bytes();
    const rt::TensorView update(report_.update);
    value_or_throw(session_->step({&gradient_, 1}, {&update, 1}, step));
    sent_bytes_ = transport_.sent_bytes() - before;
    report_.was_stopped = session_->is_asked_to_stop();
    const rt::TaskTimes& times = session_->times();
    const std::span<const float> values(report_.update);
    // A digest in halves, which doubles hold exactly.
    const std::uint64_t digest = hash64(values.data(), values.size_bytes());
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

  void run_exchange(const rt::Exchange& exchange) {
    value_or_throw(rt::exchange_now(transport_, exchange, options_.session.timeout));
  }

  // So many values of each rank, `sizes` by rank.
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
    constexpr std::size_t kPerTask = 3, kPerStep = 3;
    const rt::TaskTimes& times = session_->times();
    std::vector<double> own = {times.begin, times.end, static_cast<double>(sent_bytes_)};
    for (const rt::TaskTime& task : times.tasks) {
      own.insert(own.end(), {task.begin, task.end, static_cast<double>(task.sent_bytes)});
    }
    const rt::Plan& plan = *options_.session.plan;
    std::vector<std::size_t> sizes;
    sizes.reserve(plan.ranks.size());
    for (const rt::RankPlan& rank : plan.ranks) {
      sizes.push_back(kPerStep + kPerTask * rank.tasks.size());
    }
    const std::vector<double> all = gather(own, sizes);
    const double* next = all.data();
    for (const rt::RankPlan& rank : plan.ranks) {
      rt::TaskTimes& of = report_.times.emplace_back();
      of.begin = next[0];
      of.end = next[1];
      report_.sent_bytes.push_back(static_cast<std::uint64_t>(next[2]));
      next += kPerStep;
      for (std::size_t t = 0; t < rank.tasks.size(); ++t, next += kPerTask) {
        of.tasks.push_back({next[0], next[1], static_cast<std::uint64_t>(next[2])});
      }
    }
  }

  // The exact mean, as near as f32 comes to it.
  std::vector<float> mean() {
    std::vector<float> sum = to_f32(gradient_);
    rt::Exchange exchange{rt::ExchangeKind::AllReduce};
    exchange.reduction = rt::RankReduction::Mean;
    exchange.input = {reinterpret_cast<const std::uint8_t*>(sum.data()), 4 * sum.size()};
    exchange.output = {reinterpret_cast<std::uint8_t*>(sum.data()), 4 * sum.size()};
    run_exchange(exchange);
    return sum;
  }

  const SyncRankOptions& options_;
  rt::ConstTensorView gradient_;
  rt::Transport& transport_;
  std::unique_ptr<rt::SyncSession> session_;
  std::uint64_t sent_bytes_ = 0;
  SyncReport report_;
};

}  // namespace

SyncReport run_sync_rank(const SyncRankOptions& options, const rt::NpyArray& gradient,
                         rt::Transport& transport) {
  return SyncRank(options, gradient, transport).run();
}

}  // namespace cinch::driver
