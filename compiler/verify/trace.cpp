#include "compiler/verify/trace.h"

#include <fmt/format.h>

#include "runtime/core/numbers/floats.h"

namespace cinch::verify {

rt::Result<std::vector<float>> round_trip_of(Tensor& tensor, std::span<const float> gradient,
                                             std::uint64_t step) {
  const rt::Result<Bytes> payload = tensor.encode(gradient, step);
  CINCH_TRY(payload);
  std::vector<float> out(gradient.size());
  const rt::Status decoded = tensor.decode(*payload, out, step);
  CINCH_TRY(decoded);
  return out;
}

rt::Result<std::vector<float>> round_trip_of(const Target& target, const TensorRequest& request,
                                             std::span<const float> gradient) {
  auto tensor = target.open(request);
  CINCH_TRY(tensor);
  return round_trip_of(**tensor, gradient, 0);
}

rt::Result<Trace> trace_of(const Target& target, const TensorRequest& request,
                           std::span<const Input> steps) {
  auto tensor = target.open(request);
  CINCH_TRY(tensor);
  Trace trace;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    rt::Result<Bytes> payload = (*tensor)->encode(steps[step].values, step);
    CINCH_TRY(payload);
    std::vector<float> out(steps[step].values.size());
    rt::Status status = (*tensor)->decode(*payload, out, step);
    CINCH_TRY(status);
    trace.payloads.push_back(std::move(*payload));
    trace.decoded.push_back(out);
    status = (*tensor)->finish(out, step);
    CINCH_TRY(status);
    trace.updates.push_back(std::move(out));
  }
  trace.states = (*tensor)->states();
  return trace;
}

std::optional<std::string> find_difference(const Trace& a, const Trace& b) {
  for (std::size_t step = 0; step < a.payloads.size(); ++step) {
    const char* what = a.payloads[step] != b.payloads[step]           ? "the payload"
                       : !same_bits(a.decoded[step], b.decoded[step]) ? "what is decoded"
                       : !same_bits(a.updates[step], b.updates[step]) ? "the update"
                                                                      : nullptr;
    if (what != nullptr) return fmt::format("{} of step {}", what, step);
  }
  for (std::size_t i = 0; i < a.states.size(); ++i) {
    if (a.states[i] != b.states[i]) return fmt::format("state {} after the last step", i);
  }
  return std::nullopt;
}

}  // namespace cinch::verify
