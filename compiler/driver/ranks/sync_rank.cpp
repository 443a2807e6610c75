// Other data that ranks exchange use the same transport, between steps.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "compiler/bench/tuning_search.h"
#include "compiler/driver/process/files.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/sync_rank.h"
#include "compiler/driver/report/text.h"
#include "runtime/core/hash.h"
#include "runtime/core/numbers/number_range.h"

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
    make_up_weights();
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
    // Weights are the same on all ranks, and the user has no files of them.
    value_or_throw(session_->make_up_inputs(weights_));
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

  void make_up_weights() {
    const bool has_any = std::ranges::any_of(
        options_.session.programs, [](const auto& p) { return p && p->info().has_inputs(); });
    for (const rt::ConstTensorView& gradient : gradients_) {
      if (!has_any) break;
      made_up_.push_back(bench::made_up_gradient(gradient.num_elems));
      weights_.emplace_back(made_up_.back());
    }
  }

  const SyncRankOptions& options_;
  const std::vector<rt::ConstTensorView>& gradients_;
  rt::Transport& transport_;
  std::unique_ptr<rt::SyncSession> session_;
  std::uint64_t sent_bytes_ = 0;
  std::vector<std::vector<float>> made_up_;
  std::vector<rt::ConstTensorView> weights_;  // views of made_up_
  SyncReport report_;
  std::vector<rt::TensorView> updates_;  // the report's updates
};

using nlohmann::json;

// Time until the last tensor of the slowest rank is ready.
double backward_ms(const std::vector<rt::TaskTimes>& by_rank) {
  double longest = 0;
  for (const rt::TaskTimes& times : by_rank) {
    for (const double ready : times.ready) longest = std::max(longest, ready - times.begin);
  }
  return longest * 1e3;
}

// For each tensor its program's name, or f32.
json tensors_json(const SyncSubject& subject, const rt::Plan& plan) {
  json list = json::array();
  for (const rt::PlanTensor& tensor : plan.tensors) {
    const bool is_exact = tensor.codec == rt::kDense;
    list.push_back({{"name", tensor.name},
                    {"elements", tensor.num_elems()},
                    {"sent_as", is_exact ? "f32" : subject.programs[tensor.codec]->info().name}});
  }
  return list;
}

// What the plan sent: "topk", or "topk and uncompressed" if some tensors were sent as f32.
std::string programs_text(const json& tensors) {
  std::set<std::string> names;
  for (const json& tensor : tensors) {
    const auto name = tensor["sent_as"].get<std::string>();
    names.insert(name == "f32" ? "uncompressed" : name);
  }
  return names.empty() ? "no tensors" : fmt::format("{}", fmt::join(names, " and "));
}

std::string title(const json& r) {
  const std::size_t tensors = r["tensors"].size();
  return fmt::format("sync: {}, plan {}, {} over {}, {}{}, {}", programs_text(r["tensors"]),
                     r["plan"].get<std::string>(),
                     plainly_counted(r["ranks"].get<std::uint32_t>(), "rank"),
                     r["transport"].get<std::string>(),
                     plainly_counted(r["elements"].get<std::size_t>(), "element"),
                     tensors > 1 ? fmt::format(" in {} tensors", tensors) : "",
                     plainly_counted(r["steps"].get<std::size_t>(), "step"));
}

void print_phases(const json& phases) {
  print_text("phases of rank 0 in the last step (they overlap)\n");
  TextTable table({{"", "phase", true}, {"", "tasks"}, {"", "ms"}, {"", "bytes sent"}});
  for (const json& phase : phases) {
    table.add({phase["phase"].get<std::string>(),
               std::to_string(phase["tasks"].get<std::uint64_t>()),
               cell_in_milliseconds(phase["ms"].get<double>()),
               std::to_string(phase["sent_bytes"].get<std::uint64_t>())});
  }
  print_text("{}", table.text(text_width()));
}

// A single tensor is in the title already.
void print_tensors(const json& tensors) {
  if (tensors.size() < 2) return;
  std::map<std::string, std::pair<std::size_t, std::int64_t>> by_use;
  for (const json& tensor : tensors) {
    auto& [num, elements] = by_use[tensor["sent_as"].get<std::string>()];
    ++num;
    elements += tensor["elements"].get<std::int64_t>();
  }
  for (const auto& [use, of] : by_use) {
    print_text("sent as {:<7} {}, {}\n", use, plainly_counted(of.first, "tensor"),
               plainly_counted(static_cast<std::uint64_t>(of.second), "element"));
  }
}

}  // namespace

SyncReport run_sync_rank(const SyncRankOptions& options,
                         const std::vector<rt::ConstTensorView>& gradients,
                         rt::Transport& transport) {
  return SyncRank(options, gradients, transport).run();
}

json report_of(const SyncCommandOptions& options, const SyncSubject& subject, const rt::Plan& plan,
               const SyncReport& report) {
  const double error = report.relative_error;
  std::size_t elements = 0;
  for (const auto& update : report.updates) elements += update.size();
  json written = {{"compressor", options.program.program},
                  {"plan", plan.name},
                  {"transport", options.transport},
                  {"ranks", plan.world()},
                  {"elements", elements},
                  {"steps", report.step_ms.size()},
                  {"step_ms", median(report.step_ms)},
                  {"all_step_ms", report.step_ms},
                  {"bytes_sent", *std::ranges::max_element(report.sent_bytes)},
                  {"relative_error", std::isfinite(error) ? json(error) : json()},
                  {"same_bits", report.same_bits},
                  {"tensors", tensors_json(subject, plan)},
                  {"phases", rt::phases_json(plan.ranks[0], report.times[0])}};
  if (report.times[0].is_in_parts) written["backward_ms"] = backward_ms(report.times);
  if (report.restored)
    written["restored"] = {
        {"next_step", report.restored->next_step}, {"kept", report.restored->num_kept},
        {"joined", report.restored->num_joined},   {"reset", report.restored->num_reset},
        {"left", report.restored->num_left},       {"notes", report.restored->notes}};
  return written;
}

void print_sync_report(const json& r) {
  constexpr std::size_t kIndent = 16;
  print_text("{}\n", wrapped(title(r), 0, sentence_width()));
  if (r.contains("auto")) {
    print_text("auto            {}\n",
               wrapped(r["auto"]["reason"].get<std::string>(), kIndent, sentence_width()));
  }
  print_text("step            {} (median, of the slowest rank)\n",
             in_milliseconds(r["step_ms"].get<double>()));
  if (r.contains("backward_ms")) {
    const double backward = r["backward_ms"].get<double>();
    const double last = r["all_step_ms"].back().get<double>();
    print_text("backward pass   {}; the last step ends {} behind it\n", in_milliseconds(backward),
               in_milliseconds(last - backward));
  }
  print_text("sent by a rank  {} bytes (at most)\n", r["bytes_sent"].get<std::uint64_t>());
  if (r["relative_error"].is_number()) {
    print_text("relative error  {:.4g} (to the mean, last step)\n",
               r["relative_error"].get<double>());
  } else {
    print_text("relative error  - (the mean is zero, or not finite)\n");
  }
  print_tensors(r["tensors"]);
  if (r.contains("restored")) {
    const json& restored = r["restored"];
    print_text("states          {} as saved before step {}, {} put together anew, {} new\n",
               restored["kept"].get<std::size_t>(), restored["next_step"].get<std::uint64_t>(),
               restored["joined"].get<std::size_t>(), restored["reset"].get<std::size_t>());
    for (const json& note : restored["notes"]) print_text("  {}\n", note.get<std::string>());
  }
  print_text("all ranks hold the same bits: {}\n", r["same_bits"].get<bool>() ? "yes" : "NO");
  print_phases(r["phases"]);
}

}  // namespace cinch::driver
