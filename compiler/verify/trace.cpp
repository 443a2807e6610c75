#include "compiler/verify/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include "runtime/call/payload_assembly.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/payload/payload.h"

namespace cinch::verify {

rt::Result<std::vector<float>> round_trip_of(Tensor& tensor, std::span<const float> gradient,
                                             std::uint64_t step) {
  const rt::Result<Bytes> payload = tensor.encode(gradient, step);
  CINCH_TRY(payload);
  std::vector<float> out(gradient.size());
  CINCH_TRY(tensor.decode(*payload, out, step));
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

HostEnv env_of(const Shape& shape, std::uint32_t world, const rt::ParameterValues& parameters) {
  HostEnv env;
  env.n = shape.num_elems();
  env.rows = shape.rows;
  env.cols = shape.cols;
  env.world = world;
  env.params = parameters.host_values();
  return env;
}

rt::Result<Fields> fields_of(const rt::ProgramInfo& info, const Bytes& payload,
                             const HostEnv& env) {
  const auto layout = rt::payload_layout(info, env, {});
  CINCH_TRY(layout);
  Fields fields;
  for (std::size_t i = 0; i < layout->fields.size(); ++i) {
    const rt::FieldPlace& place = layout->fields[i];
    const rt::ArrayType& type = info.wire.fields[i].type;
    interp::Array array{type.dtype, type.rank, {1, 1}, {}};
    if (type.rank > 0) array.dims[type.rank - 1] = place.row_elems;
    if (type.rank == 2)
      array.dims[0] = place.num_elems / std::max<std::int64_t>(place.row_elems, 1);
    const auto bytes = std::span(payload).subspan(static_cast<std::size_t>(place.offset),
                                                  static_cast<std::size_t>(place.size_bytes));
    array.bits = rt::unpack_elements(type.dtype, bytes, place.num_elems);
    for (std::uint64_t& x : array.bits) x = encode_bits(type.dtype, x);
    fields.push_back(std::move(array));
  }
  return fields;
}

rt::Result<Bytes> encode_on(const Trial& trial, const Shape& shape, std::uint32_t rank,
                            std::uint32_t world, const std::vector<float>& gradient,
                            std::vector<float>* decoded) {
  TensorRequest request = trial.request(shape);
  request.worker = rank;
  request.world = world;
  auto tensor = trial.subject.main->open(request);
  CINCH_TRY(tensor);
  rt::Result<Bytes> payload = (*tensor)->encode(gradient, 0);
  if (!payload || decoded == nullptr) return payload;
  decoded->resize(gradient.size());
  CINCH_TRY((*tensor)->decode(*payload, *decoded, 0));
  return payload;
}

}  // namespace cinch::verify
