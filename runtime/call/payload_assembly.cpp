// Assembly of plain arrays into a payload.
#include "runtime/call/payload_assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/payload/payload.h"

namespace cinch::rt {
namespace {

Status check_counts(const PayloadContext& context, std::span<const std::uint32_t> counts) {
  std::vector<std::int64_t> bounds;
  Status status = payload_count_bounds(*context.info, context.env, bounds);
  if (!status) return status;
  if (counts.size() != bounds.size()) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{} counts, the wire has {}", counts.size(), bounds.size()));
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] <= bounds[i]) continue;
    return fail(ErrorKind::InvalidArgument,
                fmt::format("count {} is {}, its bound {}", context.info->wire.counts[i].name,
                            counts[i], bounds[i]));
  }
  return Ok{};
}

Status copy_fields(const PayloadContext& context, const EncodedFields& encoded,
                   const PayloadLayout& layout, std::vector<std::uint8_t>& out) {
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const FieldPlace& place = layout.fields[i];
    const bool has_field = i < encoded.fields.size();
    const std::size_t given = has_field ? encoded.fields[i].size() : 0;
    if (!has_field || given != static_cast<std::size_t>(place.size_bytes)) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("field {} has {} bytes, its type makes {}",
                              context.info->wire.fields[i].name, given, place.size_bytes));
    }
    if (given > 0) std::memcpy(out.data() + place.offset, encoded.fields[i].data(), given);
  }
  return Ok{};
}

}  // namespace

Result<std::vector<std::uint8_t>> assemble_payload(const PayloadContext& context,
                                                   const EncodedFields& encoded) {
  const std::vector<std::uint32_t> none(context.info->wire.counts.size(), 0);
  const auto& counts = encoded.non_finite ? none : encoded.counts;
  CINCH_TRY(check_counts(context, counts));
  const auto layout = payload_layout(*context.info, context.env, counts);
  CINCH_TRY(layout);
  std::vector<std::uint8_t> out(static_cast<std::size_t>(layout->size_bytes), 0);
  if (!encoded.non_finite) {
    CINCH_TRY(copy_fields(context, encoded, *layout, out));
  }
  PayloadHeader header;
  header.flags = encoded.non_finite ? kPayloadNonFinite : 0;
  header.fingerprint = context.fingerprint;
  header.decode_hash = context.decode_hash;
  header.rows = context.env.rows;
  header.cols = context.env.cols;
  write_payload_frame(out, header, counts, *layout);
  return out;
}

void pack_elements(DType dtype, std::span<const std::uint64_t> elements,
                   std::span<std::uint8_t> to) {
  std::ranges::fill(to, std::uint8_t{0});
  std::size_t bit = 0;
  for (std::uint64_t element : elements) {
    for (int i = 0; i < dtype.bits; ++i, ++bit) {
      to[bit / 8] |= static_cast<std::uint8_t>((element >> i & 1) << bit % 8);
    }
  }
}

std::vector<std::uint8_t> pack_elements(DType dtype, std::span<const std::uint64_t> elements) {
  const auto num_elems = static_cast<std::int64_t>(elements.size());
  std::vector<std::uint8_t> out(static_cast<std::size_t>(packed_bytes(dtype, num_elems)));
  pack_elements(dtype, elements, out);
  return out;
}

void unpack_elements(DType dtype, std::span<const std::uint8_t> bytes,
                     std::span<std::uint64_t> to) {
  std::size_t bit = 0;
  for (std::uint64_t& element : to) {
    element = 0;
    for (int i = 0; i < dtype.bits; ++i, ++bit) {
      element |= std::uint64_t{bytes[bit / 8] >> bit % 8 & 1u} << i;
    }
  }
}

std::vector<std::uint64_t> unpack_elements(DType dtype, std::span<const std::uint8_t> bytes,
                                           std::int64_t num_elems) {
  std::vector<std::uint64_t> out(static_cast<std::size_t>(num_elems));
  unpack_elements(dtype, bytes, out);
  return out;
}

}  // namespace cinch::rt
