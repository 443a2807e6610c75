// Payloads of ranks whose fields add up: encodes them, and splits them into arrays.
#pragma once
#include <vector>

#include "compiler/interp/array.h"
#include "compiler/verify/trial.h"
#include "runtime/call/parameters.h"

namespace cinch::verify {

/// The fields of a payload; elements as in the interpreter.
using Fields = std::vector<interp::Array>;

HostEnv env_of(const Shape& shape, std::uint32_t world, const rt::ParameterValues& parameters);

/// Errors: those of formulas.
rt::Result<Fields> fields_of(const rt::ProgramInfo& info, const Bytes& payload, const HostEnv& env);

/// The payload of a new tensor, and what it decodes to (unless null).
rt::Result<Bytes> encode_on(const Trial& trial, const Shape& shape, std::uint32_t rank,
                            std::uint32_t world, const std::vector<float>& gradient,
                            std::vector<float>* decoded);

}  // namespace cinch::verify
