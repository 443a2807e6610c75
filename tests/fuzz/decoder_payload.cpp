// Brings counts within their bounds, places fields by the layout for these counts, and makes
// indices ascend below their limit; the library's own writer does the rest.
#include "tests/fuzz/decoder_payload.h"

#include <algorithm>
#include <cstring>

#include "runtime/call/payload_assembly.h"
#include "runtime/core/hash.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The first `size` bytes of the input's body.
Bytes body_of(const DecoderInput& input, std::size_t size) {
  Bytes body(input.body.begin(), input.body.end());
  for (std::uint64_t word = hash64(body.data(), body.size()); body.size() < size;) {
    word = hash64(&word, sizeof word);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&word);
    body.insert(body.end(), bytes, bytes + sizeof word);
  }
  body.resize(size);
  return body;
}

std::vector<std::uint32_t> counts_of(const rt::PayloadExpectation& expected,
                                     const DecoderInput& input) {
  if (expected.env.n == 0) return {};
  std::vector<std::int64_t> bounds;
  rt::payload_count_bounds(*expected.info, expected.env, bounds).value();
  std::vector<std::uint32_t> counts(bounds.size());
  const Bytes body = body_of(input, 4 * counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::uint32_t wanted = 0;
    std::memcpy(&wanted, body.data() + 4 * i, 4);
    const auto bound = static_cast<std::uint64_t>(bounds[i]);
    const std::uint64_t limit = (input.way & kMarkedNonFinite) != 0  ? 0
                                : (input.way & kCountsUnmended) != 0 ? 2 * bound
                                                                     : bound;
    counts[i] = static_cast<std::uint32_t>(wanted % (limit + 1));
  }
  return counts;
}

// One more than the largest index that a field may hold.
std::uint64_t index_limit(const rt::PayloadExpectation& expected, const rt::FieldInfo& field) {
  const DType dtype = field.type.dtype;
  const int bits = dtype.bits - (is_signed_int(dtype) ? 1 : 0);
  const std::uint64_t of_type = bits >= 64 ? UINT64_MAX : std::uint64_t{1} << bits;
  if (!field.index_limit) return of_type;
  const std::int64_t limit =
      expected.info->exprs->eval_int(*field.index_limit, expected.env).value();
  return std::min(of_type, static_cast<std::uint64_t>(std::max<std::int64_t>(limit, 0)));
}

// Leaves rows that already ascend below the limit. `row` has at most `limit` elements.
void make_ascending(std::span<std::uint64_t> row, std::uint64_t limit) {
  std::sort(row.begin(), row.end());
  for (std::size_t i = 1; i < row.size(); ++i) row[i] = std::max(row[i], row[i - 1] + 1);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::min(row[i], limit - row.size() + i);
}

// Would a reader accept every index? Not if a row is too long for its limit.
bool mend_indices(const rt::PayloadExpectation& expected, const rt::FieldInfo& field,
                  const rt::FieldPlace& place, std::vector<std::uint64_t>& elements) {
  if (!field.ascending && !field.index_limit) return true;
  const std::uint64_t limit = index_limit(expected, field);
  const auto row_elems = static_cast<std::size_t>(place.row_elems);
  if (limit < (field.ascending ? row_elems : 1)) return elements.empty();
  for (std::uint64_t& element : elements) element %= limit;
  for (std::size_t begin = 0; field.ascending && begin < elements.size(); begin += row_elems) {
    make_ascending(std::span(elements).subspan(begin, row_elems), limit);
  }
  return true;
}

// The fields as a reader accepts them, if that is wanted.
void mend_fields(const rt::PayloadExpectation& expected, const rt::PayloadLayout& layout,
                 std::uint8_t way, BuiltPayload& built) {
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const rt::FieldInfo& field = expected.info->wire.fields[i];
    const rt::FieldPlace& place = layout.fields[i];
    const auto bytes = std::span(built.bytes)
                           .subspan(static_cast<std::size_t>(place.offset),
                                    static_cast<std::size_t>(place.size_bytes));
    std::vector<std::uint64_t> elements =
        rt::unpack_elements(field.type.dtype, bytes, place.num_elems);
    if ((way & kMarkedNonFinite) != 0) {
      std::fill(elements.begin(), elements.end(), 0);
    } else if ((way & kIndicesUnmended) != 0) {
      built.is_valid = false;
    } else {
      built.is_valid &= mend_indices(expected, field, place, elements);
    }
    // Also clears the bits after the last element.
    const Bytes packed = rt::pack_elements(field.type.dtype, elements);
    std::copy(packed.begin(), packed.end(), bytes.begin());
  }
}

// The body's bytes as the payload's fields, sealed.
BuiltPayload seal(const rt::PayloadExpectation& expected, const DecoderInput& input) {
  const std::vector<std::uint32_t> counts = counts_of(expected, input);
  const rt::PayloadLayout layout = rt::payload_layout(*expected.info, expected.env, counts).value();
  const auto size = static_cast<std::size_t>(layout.size_bytes - rt::kPayloadHeaderBytes);
  const Bytes body = body_of(input, size);
  BuiltPayload built{Bytes(rt::kPayloadHeaderBytes), (input.way & kCountsUnmended) == 0};
  built.bytes.insert(built.bytes.end(), body.begin(), body.end());
  mend_fields(expected, layout, input.way, built);
  rt::PayloadHeader header;
  header.flags = (input.way & kMarkedNonFinite) != 0 ? rt::kPayloadNonFinite : 0;
  header.fingerprint = expected.fingerprint;
  header.decode_hash = expected.decode_hash;
  header.rows = expected.env.rows;
  header.cols = expected.env.cols;
  rt::write_payload_frame(built.bytes, header, counts, layout);
  return built;
}

void reseal(const rt::PayloadExpectation& expected, Bytes& bytes) {
  const std::size_t num_counts = expected.env.n == 0 ? 0 : expected.info->wire.counts.size();
  if (bytes.size() < rt::kPayloadHeaderBytes + 4 * num_counts) return;
  const auto size_bytes = static_cast<std::int64_t>(bytes.size());
  std::memcpy(bytes.data() + 56, &size_bytes, 8);
  const std::uint32_t word = rt::payload_check_word(bytes, num_counts);
  std::memcpy(bytes.data() + rt::kPayloadCheckOffset, &word, 4);
}

void do_damage(const rt::PayloadExpectation& expected, const DecoderInput& input,
               BuiltPayload& built) {
  built.is_valid = false;
  Bytes& bytes = built.bytes;
  bytes[input.damage_at % bytes.size()] ^= input.damage;
  const auto size = static_cast<std::int64_t>(bytes.size()) + input.length_change;
  bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(size, 0)));
  if ((input.way & kResealedPayload) != 0) reseal(expected, bytes);
}

}  // namespace

DecoderInput read_decoder_input(std::span<const std::uint8_t> bytes) {
  DecoderInput input;
  input.session = bytes[0];
  input.way = bytes[1];
  std::memcpy(&input.damage_at, bytes.data() + 2, 4);
  input.damage = bytes[6];
  input.length_change = static_cast<std::int8_t>(bytes[7]);
  input.body = bytes.subspan(kDecoderHeadBytes);
  return input;
}

BuiltPayload build_payload(const rt::PayloadExpectation& expected, const DecoderInput& input) {
  if ((input.way & kRawPayload) != 0) {
    return {Bytes(input.body.begin(), input.body.end()), false};
  }
  BuiltPayload built = seal(expected, input);
  if ((input.way & kDamagedPayload) != 0) do_damage(expected, input, built);
  return built;
}

}  // namespace cinch::testing
