// What a session knows of one tensor and of a call besides memory and parameters, and what follows
// for kernels, host formulas and payloads. The same for sessions on CPUs and on GPUs.
#pragma once
#include <array>
#include <exception>
#include <new>
#include <span>
#include <system_error>

#include "runtime/call/parameters.h"
#include "runtime/core/check.h"
#include "runtime/core/use_flag.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {

struct TensorFacts {
  std::int64_t rows = 0, cols = 1;
  std::uint32_t world = 1, worker = 0;
  std::uint64_t seed = 0;
  std::uint32_t tensor = 0, piece = 0;
  std::uint32_t machine_ranks = 0;  // on each machine; 0: all ranks are on one
  std::int64_t num_elems() const { return rows * cols; }
};

/// Checks the facts. Errors: InvalidArgument (a negative shape, 2^32 elements or more, worker not
/// below world).
Status check_facts(const TensorFacts& facts);
/// Checks the step number. Errors: InvalidArgument (too large for the number of a draw).
Status check_step(std::uint64_t step);
/// For a program on vectors, any tensor becomes one long row of elements.
TensorFacts facts_for(const ProgramInfo& info, const TensorFacts& given);

HostEnv host_env(const TensorFacts& facts, const ParameterValues& parameters, std::uint64_t step);
/// KernelArgs::draw.
DrawWords draw_words(const TensorFacts& facts, std::uint64_t step);
/// The header of a payload, without flags and length.
PayloadHeader payload_header(const ProgramInfo& info,
                             const std::array<std::uint64_t, 2>& fingerprint,
                             const TensorFacts& facts, const ParameterValues& parameters,
                             std::uint64_t step);
/// Stored bytes of a state. Errors: Overflow.
Result<std::int64_t> state_bytes(const ProgramInfo& info, const StateInfo& state,
                                 const HostEnv& env);

/// Calls a function and turns its exceptions into errors: a session throws nothing.
template <typename Call>
auto guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const InternalError& error) {
    return fail(ErrorKind::Internal, error.what());
  } catch (const std::bad_alloc&) {
    return fail(ErrorKind::OutOfMemory, "no memory");
  } catch (const std::system_error& error) {
    // The system has no more threads or locks.
    return fail(ErrorKind::Unavailable, error.what(), error.code().value());
  } catch (const std::exception& error) {
    return fail(ErrorKind::Internal, error.what());
  } catch (...) {
    return fail(ErrorKind::Internal, "an exception of an unknown type");
  }
}

/// The same for a session, which takes one call at a time. Errors: InvalidArgument (another call is
/// running).
template <typename Call>
auto guarded_use(UseFlag& in_use, const Call& call) -> decltype(call()) {
  const Use use(in_use);
  if (!use) {
    return fail(ErrorKind::InvalidArgument,
                "the session is in use by another thread: it takes one call at a time");
  }
  return guarded(call);
}

}  // namespace cinch::rt
