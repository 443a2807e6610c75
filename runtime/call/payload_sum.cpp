// Sums of payloads; see joins.h.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/call/joins.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/collective/join_ranks.h"
#include "runtime/core/lang.h"
#include "runtime/core/numbers/floats.h"

namespace cinch::rt {
namespace {

using Words = std::vector<std::uint64_t>;

float float_of(DType dtype, std::uint64_t word) {
  switch (dtype.kind) {
    case DTypeKind::F16:
      return lang::from_f16(static_cast<lang::u16>(word));
    case DTypeKind::BF16:
      return lang::from_bf16(static_cast<lang::u16>(word));
    case DTypeKind::F8E4M3:
      return lang::from_f8e4m3(static_cast<lang::u8>(word));
    case DTypeKind::F8E5M2:
      return lang::from_f8e5m2(static_cast<lang::u8>(word));
    default:
      return std::bit_cast<float>(static_cast<std::uint32_t>(word));
  }
}

std::uint64_t word_of(DType dtype, float value) {
  switch (dtype.kind) {
    case DTypeKind::F16:
      return lang::to_f16(value);
    case DTypeKind::BF16:
      return lang::to_bf16(value);
    default:
      return std::bit_cast<std::uint32_t>(lang::canonical(value));
  }
}

// The i-th elements of all ranks' arrays as one word; nothing where it does not fit.
using Joiner = std::optional<std::uint64_t> (*)(FieldSum, DType, std::span<const Words>,
                                                std::size_t);

std::optional<std::uint64_t> join_floats(FieldSum how, DType dtype, std::span<const Words> ranks,
                                         std::size_t i) {
  const RankReduction joins = reduction_of(how);
  if (dtype == kF64) {
    double value = std::bit_cast<double>(ranks[0][i]);
    for (const Words& rank : ranks.subspan(1)) {
      value = join_values(joins, value, std::bit_cast<double>(rank[i]));
    }
    return std::bit_cast<std::uint64_t>(lang::canonical(value));
  }
  float value = float_of(dtype, ranks[0][i]);
  for (const Words& rank : ranks.subspan(1)) {
    value = join_values(joins, value, float_of(dtype, rank[i]));
  }
  return dtype.bits == 8 ? f8_of_sum(dtype, value) : word_of(dtype, value);
}

std::optional<std::uint64_t> join_integers(FieldSum how, DType dtype, std::span<const Words> ranks,
                                           std::size_t i) {
  const int unused = 64 - dtype.bits;
  const auto extended = [&](std::uint64_t word) {
    return is_signed_int(dtype)
               ? static_cast<__int128>(static_cast<std::int64_t>(word << unused) >> unused)
               : static_cast<__int128>(word);
  };
  __int128 value = extended(ranks[0][i]);
  for (const Words& rank : ranks.subspan(1)) {
    const __int128 other = extended(rank[i]);
    value = how == FieldSum::Sum   ? value + other
            : how == FieldSum::Min ? std::min(value, other)
                                   : std::max(value, other);
  }
  const auto word = static_cast<std::uint64_t>(value) & (~std::uint64_t{0} >> unused);
  if (extended(word) != value) return std::nullopt;
  return word;
}

Result<std::vector<std::uint8_t>> join_field(const FieldInfo& field, std::int64_t num_elems,
                                             std::span<const PayloadView> ranks,
                                             std::size_t index) {
  std::vector<Words> words;
  words.reserve(ranks.size());
  for (const PayloadView& rank : ranks) {
    words.push_back(unpack_elements(field.type.dtype, rank.fields[index], num_elems));
  }
  const Joiner joined = is_float(field.type.dtype) ? join_floats : join_integers;
  Words result(static_cast<std::size_t>(num_elems));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto word = joined(field.sum, field.type.dtype, words, i);
    if (!word) {
      return fail(ErrorKind::Overflow,
                  fmt::format("the sum over {} ranks of field {} does not fit {}", ranks.size(),
                              field.name, dtype_name(field.type.dtype)));
    }
    result[i] = *word;
  }
  return pack_elements(field.type.dtype, result);
}

Status check_counts(const PayloadContext& context, std::span<const std::uint32_t> counts) {
  std::vector<std::int64_t> bounds;
  CINCH_TRY(payload_count_bounds(*context.info, context.env, bounds));
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

RankReduction reduction_of(FieldSum how) {
  if (how == FieldSum::Min) return RankReduction::Min;
  return how == FieldSum::Max ? RankReduction::Max : RankReduction::Sum;
}

bool has_narrow_fields(const ProgramInfo& info) {
  return std::ranges::any_of(info.wire.fields, [](const FieldInfo& field) {
    const DType dtype = field.type.dtype;
    return dtype == kF16 || (is_float(dtype) && dtype.bits == 8);
  });
}

std::optional<std::uint64_t> f8_of_sum(DType dtype, float sum) {
  const bool is_e4m3 = dtype == kF8E4M3;
  // A value that rounds to the largest one is at most half a unit in its last place above it.
  const float most = is_e4m3 ? 464.0f : 61440.0f;
  const float size = std::fabs(sum);
  const bool fits = is_e4m3 ? size <= most : size < most;
  if (std::isfinite(sum) && !fits) return std::nullopt;
  return is_e4m3 ? lang::to_f8e4m3(sum) : lang::to_f8e5m2(sum);
}

bool has_summable_wire(const ProgramInfo& info) {
  return !info.wire.fields.empty() && info.wire.counts.empty() &&
         std::ranges::all_of(info.wire.fields,
                             [](const FieldInfo& field) { return field.sum != FieldSum::None; });
}

Result<std::vector<std::uint8_t>> sum_payloads(
    const PayloadExpectation& expected, std::span<const std::span<const std::uint8_t>> payloads) {
  if (!has_summable_wire(*expected.info) || payloads.empty()) {
    return fail(ErrorKind::InvalidArgument,
                expected.info->name + ": its payloads do not add up field by field");
  }
  const DefaultFloatEnvironment environment;
  std::vector<PayloadView> ranks;
  for (const auto payload : payloads) {
    auto view = TRY(read_payload(payload, expected));
    ranks.push_back(std::move(view));
  }
  std::vector<std::uint8_t> sum(payloads[0].begin(), payloads[0].end());
  const PayloadLayout& layout = ranks[0].layout;
  PayloadHeader header = ranks[0].header;
  for (const PayloadView& rank : ranks) header.flags |= rank.header.flags;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const FieldPlace& place = layout.fields[i];
    std::uint8_t* const to = sum.data() + place.offset;
    if (header.is_non_finite()) {
      std::memset(to, 0, static_cast<std::size_t>(place.size_bytes));
      continue;
    }
    const auto bytes = TRY(join_field(expected.info->wire.fields[i], place.num_elems, ranks, i));
    std::copy(bytes.begin(), bytes.end(), to);
  }
  write_payload_frame(sum, header, {}, layout);
  return sum;
}

// Assembly of plain arrays into a payload.

Result<std::vector<std::uint8_t>> assemble_payload(const PayloadContext& context,
                                                   const EncodedFields& encoded) {
  const std::vector<std::uint32_t> none(context.info->wire.counts.size(), 0);
  const auto& counts = encoded.non_finite ? none : encoded.counts;
  CINCH_TRY(check_counts(context, counts));
  const auto layout = TRY(payload_layout(*context.info, context.env, counts));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(layout.size_bytes), 0);
  if (!encoded.non_finite) {
    CINCH_TRY(copy_fields(context, encoded, layout, out));
  }
  PayloadHeader header{.flags = encoded.non_finite ? kPayloadNonFinite : 0,
                       .fingerprint = context.fingerprint,
                       .decode_hash = context.decode_hash,
                       .rows = context.env.rows,
                       .cols = context.env.cols};
  write_payload_frame(out, header, counts, layout);
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
