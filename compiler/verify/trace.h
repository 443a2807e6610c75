// Results of a program: all of them in a few steps, for comparing bit by bit, and the fields of one
// payload, for adding up those of ranks.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/interp/array.h"
#include "compiler/verify/inputs.h"
#include "compiler/verify/subject.h"
#include "compiler/verify/trial.h"
#include "runtime/call/parameters.h"

namespace cinch::verify {

struct Trace {
  std::vector<Bytes> payloads;
  std::vector<std::vector<float>> decoded, updates;  // one for every step
  std::vector<Bytes> states;                         // after the last step
};

/// Runs steps 0, 1 … of a new tensor: encode, decode and finish.
rt::Result<Trace> trace_of(const Target& target, const TensorRequest& request,
                           std::span<const Input> steps);
/// The first difference: "the payload of step 1", or nothing.
std::optional<std::string> find_difference(const Trace& a, const Trace& b);

/// decode(encode(gradient)), as a new vector.
rt::Result<std::vector<float>> round_trip_of(Tensor& tensor, std::span<const float> gradient,
                                             std::uint64_t step);
/// The same, with a new tensor.
rt::Result<std::vector<float>> round_trip_of(const Target& target, const TensorRequest& request,
                                             std::span<const float> gradient);

/// The fields of a payload, with elements as in the interpreter.
using Fields = std::vector<interp::Array>;

/// What formulas see of a tensor.
HostEnv env_of(const Shape& shape, std::uint32_t world, const rt::ParameterValues& parameters);

/// Errors: those of formulas.
rt::Result<Fields> fields_of(const rt::ProgramInfo& info, const Bytes& payload, const HostEnv& env);

/// The payload of a new tensor, and what it decodes to (unless null).
rt::Result<Bytes> encode_on(const Trial& trial, const Shape& shape, std::uint32_t rank,
                            std::uint32_t world, const std::vector<float>& gradient,
                            std::vector<float>* decoded);

}  // namespace cinch::verify
