// Bodies of update_errors.h.
#include "runtime/sync/states/update_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/session/tensor_convert.h"

namespace cinch::rt {
namespace {

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
    const auto error = error_of(tensor, updates[tensor], is_sum ? 1 : plan_.world());
    CINCH_TRY(error);
    values[tensor] = *error;
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
    Status status = exchange_now(transport, exchange, timeout, "sum of gradients");
    if (!status) return status;
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
