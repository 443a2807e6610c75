#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <ranges>

#include "runtime/session/tensor_convert.h"
#include "runtime/sync/sync_session_impl.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kStep = 0, kOptions = 1, kFlags = 2, kUpdates = 3, kFirst = 4;
constexpr std::uint64_t kAsksToStop = 1, kNonFinite = 2;
constexpr std::size_t kFlagBits = 8;
constexpr std::size_t kWordBits = 64, kOutcomeBits = 32, kStatusBits = 8;

std::size_t words_for(std::size_t count, std::size_t bits) {
  return (count * bits + kWordBits - 1) / kWordBits;
}

// Elements to add up at a time: as much as an exchange of a plan.
constexpr std::size_t kElementsAtATime = std::size_t{1} << 20;

std::span<float> floats_of(AlignedBuffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()),
          static_cast<std::size_t>(buffer.size_bytes()) / sizeof(float)};
}

std::int64_t f32_bytes(std::int64_t elems) {
  return elems * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace

StepRecords::StepRecords(const Plan& plan, std::uint32_t rank) : plan_(plan), rank_(rank) {
  for (const Task& task : plan.ranks[rank].tasks) {
    if (task.is_last_part()) protocols_.push_back(plan.groups[task.groups[0]].pieces[0]);
  }
  // Each rank has its tasks in an order of its own.
  std::ranges::sort(protocols_);
  first_outcome_ = kFirst;
  first_used_ = first_outcome_ + words_for(protocols_.size(), kOutcomeBits);
  words_ = first_used_ + words_for(plan.tensors.size(), 1);
  own_.resize(words_);
  all_.resize(words_ * plan.world());
  const std::uint64_t bytes = words_ * sizeof(std::uint64_t);
  for (std::uint64_t r = 0; r < plan.world(); ++r) parts_.push_back({r * bytes, bytes});
}

std::uint64_t StepRecords::word(std::uint32_t rank, std::size_t index) const {
  return all_[rank * words_ + index];
}

void StepRecords::begin(std::uint64_t step, std::uint64_t options, std::uint64_t next_step) {
  std::ranges::fill(own_, 0);
  own_[kStep] = step;
  own_[kOptions] = options;
  own_[kFlags] = next_step << kFlagBits;
}
void StepRecords::ask_to_stop() {
  own_[kFlags] |= kAsksToStop;
}
void StepRecords::set_updates(std::uint64_t digest) {
  own_[kUpdates] = digest;
}
void StepRecords::note_non_finite() {
  own_[kFlags] |= kNonFinite;
}
void StepRecords::note_used(std::uint32_t tensor) {
  own_[first_used_ + tensor / kWordBits] |= std::uint64_t{1} << tensor % kWordBits;
}

void StepRecords::set_outcome(std::size_t protocol, const PartOutcome& outcome) {
  const std::uint64_t part = std::min<std::uint32_t>(outcome.part, (1U << 24) - 1);
  const std::uint64_t said = static_cast<std::uint64_t>(outcome.status) | part << kStatusBits;
  own_[first_outcome_ + protocol / 2] |= said << kOutcomeBits * (protocol % 2);
}

Exchange StepRecords::exchange() {
  Exchange exchange{ExchangeKind::AllGather};
  exchange.input = {reinterpret_cast<const std::uint8_t*>(own_.data()),
                    own_.size() * sizeof(std::uint64_t)};
  exchange.output = {reinterpret_cast<std::uint8_t*>(all_.data()),
                     all_.size() * sizeof(std::uint64_t)};
  exchange.received = parts_;
  return exchange;
}

Status StepRecords::check_steps() const {
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    if (word(rank, kStep) == own_[kStep] && word(rank, kOptions) == own_[kOptions]) continue;
    if (word(rank, kStep) == own_[kStep]) {
      return invalid(fmt::format(
          "rank {} takes step {} with other options (scale, sum, skipping, errors) than "
          "rank {}",
          rank, own_[kStep], rank_));
    }
    return invalid(fmt::format("rank {} was at step {}, rank {} at step {}", rank,
                               word(rank, kStep), rank_, own_[kStep]));
  }
  return check_states();
}

// Each rank may have loaded its own.
Status StepRecords::check_states() const {
  const auto step_of = [this](std::uint32_t rank) { return word(rank, kFlags) >> kFlagBits; };
  const auto all = std::views::iota(0U, plan_.world());
  if (std::ranges::all_of(all, [&](auto rank) { return step_of(rank) == step_of(rank_); })) {
    return Ok{};
  }
  std::map<std::uint64_t, std::vector<std::uint32_t>> ranks;  // by step
  for (const std::uint32_t rank : all) ranks[step_of(rank)].push_back(rank);
  std::string text;
  for (const auto& [step, which] : ranks) {
    text += fmt::format("{}{} {} {} before step {}", text.empty() ? "" : ", ",
                        which.size() == 1 ? "rank" : "ranks", fmt::join(which, ", "),
                        which.size() == 1 ? "has those" : "have those", step);
  }
  return invalid("states of different steps were loaded: " + text);
}

bool StepRecords::has_flag(std::uint64_t flag) const {
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    if ((word(rank, kFlags) & flag) != 0) return true;
  }
  return false;
}
bool StepRecords::is_any_asking_to_stop() const {
  return has_flag(kAsksToStop);
}
bool StepRecords::is_any_non_finite() const {
  return has_flag(kNonFinite);
}

bool StepRecords::do_updates_differ() const {
  std::uint64_t first = 0;
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    const std::uint64_t digest = word(rank, kUpdates);
    if (first != 0 && digest != 0 && digest != first) return true;
    if (first == 0) first = digest;
  }
  return false;
}

bool StepRecords::is_used_anywhere(std::uint32_t tensor) const {
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    const std::uint64_t used = word(rank, first_used_ + tensor / kWordBits);
    if ((used >> tensor % kWordBits & 1) != 0) return true;
  }
  return false;
}

JointOutcome StepRecords::outcome(std::size_t protocol) {
  by_rank_.clear();
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    const auto said = static_cast<std::uint32_t>(word(rank, first_outcome_ + protocol / 2) >>
                                                 kOutcomeBits * (protocol % 2));
    const std::uint32_t status = said & ((1U << kStatusBits) - 1);
    // A status that this version does not know counts as a failure.
    const bool is_known = status <= static_cast<std::uint32_t>(RankStatus::NonFinite);
    by_rank_.push_back(
        {is_known ? static_cast<RankStatus>(status) : RankStatus::Failed, said >> kStatusBits});
  }
  return join_outcomes(by_rank_);
}

UpdateErrors::UpdateErrors(const Plan& plan, std::uint32_t rank, std::uint32_t threads)
    : plan_(plan), rank_(rank), threads_(threads), kept_(plan.tensors.size()) {}

void UpdateErrors::begin() {
  values_.clear();
}

Status UpdateErrors::keep(std::uint32_t tensor, const ConstTensorView& gradient) {
  if (!runner_) runner_ = std::make_unique<TaskRunner>(threads_);
  AlignedBuffer& kept = kept_[tensor];
  const Status status = kept.resize(f32_bytes(gradient.num_elems));
  return status ? convert_to_f32(gradient, floats_of(kept), *runner_, nullptr) : status;
}

Status UpdateErrors::measure(std::span<const TensorView> updates, bool is_sum, Transport& transport,
                             std::chrono::milliseconds timeout) {
  std::vector<double> values(plan_.tensors.size());
  for (std::uint32_t tensor = 0; tensor < values.size(); ++tensor) {
    CINCH_TRY(add_up(floats_of(kept_[tensor]), transport, timeout));
    values[tensor] = TRY(error_of(tensor, updates[tensor], is_sum ? 1 : plan_.world()));
  }
  values_ = std::move(values);
  return Ok{};
}

Status UpdateErrors::add_up(std::span<float> values, Transport& transport,
                            std::chrono::milliseconds timeout) {
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), kElementsAtATime));
    Exchange exchange{ExchangeKind::AllReduce};
    exchange.reduction = RankReduction::Sum;
    exchange.output = {reinterpret_cast<std::uint8_t*>(part.data()), part.size_bytes()};
    exchange.input = exchange.output;
    CINCH_TRY(exchange_now(transport, exchange, timeout, "sum of gradients"));
    values = values.subspan(part.size());
  }
  return Ok{};
}

Result<double> UpdateErrors::error_of(std::uint32_t tensor, const TensorView& update,
                                      double divisor) {
  const ElementRange part = updated_part(plan_.tensors[tensor], rank_);
  Status status = update_.resize(f32_bytes(part.num_elems));
  const std::span<float> found = floats_of(update_);
  if (status) {
    const ConstTensorView view(update.data, update.dtype, update.num_elems);
    status = convert_to_f32(view, found, *runner_, nullptr);
  }
  CINCH_TRY(status);
  const auto sums = std::span<const float>(floats_of(kept_[tensor]))
                        .subspan(static_cast<std::size_t>(part.first), found.size());
  double squares = 0, differences = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double mean = sums[i] / divisor, difference = found[i] - mean;
    squares += mean * mean;
    differences += difference * difference;
  }
  if (differences == 0) return 0.0;
  const double error = std::sqrt(differences / squares);
  return std::isfinite(error) ? error : std::numeric_limits<double>::quiet_NaN();
}

std::size_t UpdateErrors::memory_bytes() const {
  auto bytes = static_cast<std::size_t>(update_.size_bytes());
  for (const AlignedBuffer& kept : kept_) bytes += static_cast<std::size_t>(kept.size_bytes());
  return bytes;
}

}  // namespace cinch::rt
