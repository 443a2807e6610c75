// From a program's results as plain arrays to a payload: what a session does after its kernels ran,
// open to others (the interpreter's results must give the same bytes).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/host_expr.h"
#include "runtime/exec/executor.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// What the header says beside the wire.
struct PayloadContext {
  const ProgramInfo* info = nullptr;
  std::array<std::uint64_t, 2> fingerprint{};
  HostEnv env;  // n, rows, cols, world, step, params; its counts are not read
  std::span<const std::uint64_t> params;  // ParameterValues::kernel_words
  DrawWords draw{};
};

/// The hash that a payload's header carries of what `decode` depends on beside the payload.
std::uint64_t decode_hash(const PayloadContext& context);

/// One encode's results: the wire's counts, and each field's elements packed as the wire stores
/// them (packed_bytes(dtype, elements) bytes). non_finite: the payload is marked, counts are 0 and
/// fields are zero, whatever was given.
struct EncodedFields {
  bool non_finite = false;
  std::vector<std::uint32_t> counts;
  std::vector<std::span<const std::uint8_t>> fields;
};

/// The payload's bytes. Errors: InvalidArgument (a field of another length, a count above its
/// bound), Overflow.
Result<std::vector<std::uint8_t>> assemble_payload(const PayloadContext& context,
                                                   const EncodedFields& encoded);

/// Elements of any type as the 64-bit words that the interpreter holds, packed as wires and states
/// store them: the low `bits` bits of each, least significant first.
std::vector<std::uint8_t> pack_elements(DType dtype, std::span<const std::uint64_t> elements);

}  // namespace cinch::rt
