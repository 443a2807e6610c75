// From a fuzzer's bytes to a payload for one program and shape. Random bytes end at the check word;
// so the bytes are a body, and the payload around it is made right: the validating reader and the
// kernels of decode are reached by most inputs.
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
  kIndicesUnmended = 4,   // indices may descend, repeat and lie outside
  kCountsUnmended = 8,    // counts may be above their bounds, up to twice
  kDamagedPayload = 16,   // one byte is changed and the length, when all else is done
  kResealedPayload = 32,  // after the damage the length and the check word are made right again
};

struct DecoderInput {
  std::uint8_t session = 0, way = 0, damage = 0;
  std::int8_t length_change = 0;
  std::uint32_t damage_at = 0;
  std::span<const std::uint8_t> body;
};
inline constexpr std::size_t kDecoderHeadBytes = 8;

/// `bytes` has kDecoderHeadBytes or more.
DecoderInput read_decoder_input(std::span<const std::uint8_t> bytes);

struct BuiltPayload {
  std::vector<std::uint8_t> bytes;
  bool is_valid = false;  // a reader must accept it; else it may
};

BuiltPayload build_payload(const rt::PayloadExpectation& expected, const DecoderInput& input);

}  // namespace cinch::testing
