// All results of a program in a few steps, for comparing bit by bit.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/verify/inputs.h"
#include "compiler/verify/subject.h"

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

}  // namespace cinch::verify
