// Turns a fuzzer's bytes into a payload for one program and shape. Random bytes would fail at the
// check word, so the bytes are a body, and the payload around it is made correct: most inputs then
// reach the validating reader and the kernels of decode.
//
//   0 u8 session   1 u8 way (PayloadWay)   2 u32 where, 6 u8 what, 7 i8 by how many bytes: damage
//   8 the body: bytes of a payload from its counts on; what is missing is drawn from a hash of it,
//   so
//     that short inputs, which a fuzzer prefers, fill large tensors, too
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/payload/payload.h"

namespace cinch::testing {

enum PayloadWay : std::uint8_t {
  kRawPayload = 1,        // the body is the whole payload
  kMarkedNonFinite = 2,   // no counts, fields of zeros
  kIndicesUnmended = 4,   // indices may descend, repeat and exceed their limits
  kCountsUnmended = 8,    // counts may exceed their bounds, up to twice
  kDamagedPayload = 16,   // one byte, and the length, are changed at the end
  kResealedPayload = 32,  // after the damage the length and the check word are corrected
};

struct DecoderInput {
  std::uint8_t session = 0, way = 0, damage = 0;
  std::int8_t length_change = 0;
  std::uint32_t damage_at = 0;
  std::span<const std::uint8_t> body;
};
inline constexpr std::size_t kDecoderHeadBytes = 8;

/// `bytes` has at least kDecoderHeadBytes.
DecoderInput read_decoder_input(std::span<const std::uint8_t> bytes);

struct BuiltPayload {
  std::vector<std::uint8_t> bytes;
  bool is_valid = false;  // a reader must accept it; otherwise it may
};

BuiltPayload build_payload(const rt::PayloadExpectation& expected, const DecoderInput& input);

}  // namespace cinch::testing
