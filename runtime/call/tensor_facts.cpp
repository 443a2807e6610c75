// Bodies of tensor_facts.h.
#include "runtime/call/tensor_facts.h"

#include <fmt/format.h>

#include "runtime/core/sizes/host_range.h"
#include "runtime/image/image.h"

namespace cinch::rt {

static constexpr std::int64_t kMaxElems = (std::int64_t{1} << 32) - 1;

Status check_facts(const TensorFacts& facts) {
  const std::int64_t rows = facts.rows, cols = facts.cols;
  if (rows < 0 || cols < 0 || (rows > 0 && cols > kMaxElems / rows)) {
    return fail(
        ErrorKind::InvalidArgument,
        fmt::format("shape [{}, {}]: from 0 to 2^32 - 1 elements are possible", rows, cols));
  }
  if (facts.world < 1 || facts.worker >= facts.world) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("worker {} of {} ranks", facts.worker, facts.world));
  }
  return Ok{};
}

Status check_step(std::uint64_t step) {
  if (step <= std::uint64_t{kMostStep}) return Ok{};
  return fail(ErrorKind::InvalidArgument, fmt::format("step {}: at most 2^56 - 1", step));
}

TensorFacts facts_for(const ProgramInfo& info, const TensorFacts& given) {
  TensorFacts facts = given;
  if (!info.is_matrix) {
    facts.rows = given.num_elems();
    facts.cols = 1;
  }
  return facts;
}

HostEnv host_env(const TensorFacts& facts, const ParameterValues& parameters, std::uint64_t step) {
  HostEnv env;
  env.n = facts.num_elems();
  env.rows = facts.rows;
  env.cols = facts.cols;
  env.world = facts.world;
  env.worker = facts.worker;
  env.step = static_cast<std::int64_t>(step);
  env.params = parameters.host_values();
  return env;
}

DrawWords draw_words(const TensorFacts& facts, std::uint64_t step) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  return {low(facts.seed), low(facts.seed >> 32), low(step),    low(step >> 32),
          facts.tensor,    facts.piece,           facts.worker, 0};
}

PayloadHeader payload_header(const ProgramInfo& info,
                             const std::array<std::uint64_t, 2>& fingerprint,
                             const TensorFacts& facts, const ParameterValues& parameters,
                             std::uint64_t step) {
  PayloadHeader header;
  header.fingerprint = fingerprint;
  header.decode_hash = decode_hash(
      info, {parameters.given_words(), facts.world, facts.seed, step, facts.tensor, facts.piece});
  header.rows = facts.rows;
  header.cols = facts.cols;
  return header;
}

Result<std::int64_t> state_bytes(const ProgramInfo& info, const StateInfo& state,
                                 const HostEnv& env) {
  std::int64_t elems = 1;
  for (int i = 0; i < state.type.rank; ++i) {
    auto dim = info.exprs.eval_int(state.type.dims[i], env);
    if (!dim) return dim;
    std::int64_t product = 0;
    if (*dim < 0 || __builtin_mul_overflow(elems, *dim, &product) || product > kMaxBufferBytes) {
      return fail(ErrorKind::Overflow, fmt::format("state {}: the size `{}` is {}", state.name,
                                                   info.exprs.print(state.type.dims[i]), *dim));
    }
    elems = product;
  }
  return packed_bytes(state.type.dtype, elems);
}

}  // namespace cinch::rt
