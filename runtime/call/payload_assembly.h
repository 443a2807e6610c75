// Makes a payload from a program's results as plain arrays, as a session does after its kernels
// ran. The interpreter uses it, too: its results must give the same bytes.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"
#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr_id.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::rt {

/// The header's values that do not follow from the wire.
struct PayloadContext {
  const ProgramInfo* info = nullptr;
  std::array<std::uint64_t, 2> fingerprint{};
  std::uint64_t decode_hash = 0;  // payload.h
  HostEnv env;                    // n, rows, cols, world, step, params; its counts are not read
};

/// Results of one encode: the wire's counts, and each field's elements packed as the wire stores
/// them (packed_bytes(dtype, elements) bytes). non_finite: the payload is marked; counts become 0
/// and fields zero, whatever was given.
struct EncodedFields {
  bool non_finite = false;
  std::vector<std::uint32_t> counts;
  std::vector<std::span<const std::uint8_t>> fields;
};

/// Returns the payload's bytes. Errors: InvalidArgument (a field of wrong length, a count above its
/// bound), Overflow.
Result<std::vector<std::uint8_t>> assemble_payload(const PayloadContext& context,
                                                   const EncodedFields& encoded);

/// Packs elements, given as 64-bit words of which the low bits count, as wires and states store
/// them: least significant bit first.
std::vector<std::uint8_t> pack_elements(DType dtype, std::span<const std::uint64_t> elements);
/// The same to memory of packed_bytes(dtype, elements) bytes.
void pack_elements(DType dtype, std::span<const std::uint64_t> elements,
                   std::span<std::uint8_t> to);
/// The inverse: num_elems words, with zeros above the type's bits. `bytes` has packed_bytes(dtype,
/// num_elems) bytes.
void unpack_elements(DType dtype, std::span<const std::uint8_t> bytes, std::span<std::uint64_t> to);
std::vector<std::uint64_t> unpack_elements(DType dtype, std::span<const std::uint8_t> bytes,
                                           std::int64_t num_elems);

}  // namespace cinch::rt
