// Reads untrusted payloads: every check comes before the first use of what it guards.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kPayloadMagic = "CNCH";
constexpr std::uint32_t kKnownFlags = kPayloadNonFinite;

tl::unexpected<Error> corrupt(std::string what) {
  return fail(ErrorKind::CorruptPayload, "payload: " + std::move(what));
}

template <typename T>
T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Element i of a run of `bits`-wide elements, least significant bit first. Reads only the element's
// bytes.
std::uint64_t load_bits(const std::uint8_t* data, std::int64_t i, int bits) {
  const auto first_bit = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(bits);
  std::uint64_t value = 0;
  int got = 0;
  std::uint64_t byte = first_bit / 8;
  int skip = static_cast<int>(first_bit % 8);
  while (got < bits) {
    value |= std::uint64_t{data[byte]} >> skip << got;
    got += 8 - skip;
    skip = 0;
    ++byte;
  }
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

Status check_expected(const PayloadHeader& header, const PayloadExpectation& expected) {
  if (header.fingerprint != expected.fingerprint) {
    return corrupt(fmt::format(
        "fingerprint {:016x}{:016x} is not that of {} with its constants ({:016x}{:016x})",
        header.fingerprint[1], header.fingerprint[0], expected.info->name, expected.fingerprint[1],
        expected.fingerprint[0]));
  }
  if (header.rows != expected.env.rows || header.cols != expected.env.cols) {
    return corrupt(fmt::format("shape [{}, {}], expected [{}, {}]", header.rows, header.cols,
                               expected.env.rows, expected.env.cols));
  }
  if (header.decode_hash != expected.decode_hash) {
    return corrupt(fmt::format(
        "decode hash {:016x}, expected {:016x}: another parameter, step, {}", header.decode_hash,
        expected.decode_hash,
        expected.info->decode_draws ? "seed or number of ranks" : "or number of ranks"));
  }
  return Ok{};
}

Status read_counts(std::span<const std::uint8_t> bytes, const PayloadExpectation& expected,
                   PayloadView& view) {
  std::vector<std::int64_t>& bounds = view.layout.counts;
  CINCH_TRY(payload_count_bounds(*expected.info, expected.env, bounds));
  const std::size_t end = kPayloadHeaderBytes + bounds.size() * sizeof(std::uint32_t);
  if (bytes.size() < end)
    return corrupt(fmt::format("{} bytes, cut within its counts", bytes.size()));
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const auto count = load<std::uint32_t>(bytes.data() + kPayloadHeaderBytes + 4 * i);
    const std::int64_t bound = view.header.is_non_finite() ? 0 : bounds[i];
    if (count > bound) {
      return corrupt(fmt::format("count {} is {}, at most {} is possible",
                                 expected.info->wire.counts[i].name, count, bound));
    }
    view.counts.push_back(count);
  }
  return Ok{};
}

struct IndexRule {
  bool ascending = false;            // within each row
  std::uint64_t limit = UINT64_MAX;  // exclusive
};

template <typename Load>
Status check_row(const FieldInfo& field, std::int64_t begin, std::int64_t end, IndexRule rule,
                 Load element) {
  std::uint64_t before = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const std::uint64_t index = element(i);
    if (index >= rule.limit) {
      return corrupt(fmt::format("field {}: element {} is {}, must be below {}", field.name, i,
                                 index, rule.limit));
    }
    if (rule.ascending && i > begin && index <= before) {
      return corrupt(fmt::format("field {}: element {} is {} after {}, must ascend", field.name, i,
                                 index, before));
    }
    before = index;
  }
  return Ok{};
}

// Checks the elements begin … end - 1. It reads all of them, so that a compiler can vectorise. If
// they ascend, the last one is the largest.
template <typename Load>
bool keeps_rule(std::int64_t begin, std::int64_t end, IndexRule rule, Load element) {
  if (begin == end) return true;
  if (rule.ascending) {
    std::uint32_t descents = 0;
    for (std::int64_t i = begin + 1; i < end; ++i) descents |= element(i - 1) >= element(i) ? 1 : 0;
    return descents == 0 && element(end - 1) < rule.limit;
  }
  auto largest = element(begin);
  for (std::int64_t i = begin + 1; i < end; ++i) largest = std::max(largest, element(i));
  return largest < rule.limit;
}

template <typename Load>
Status check_indices(const FieldInfo& field, const FieldPlace& place, IndexRule rule,
                     Load element) {
  for (std::int64_t begin = 0; begin < place.num_elems; begin += place.row_elems) {
    const std::int64_t end = begin + place.row_elems;
    if constexpr (std::is_same_v<decltype(element(begin)), std::uint32_t>) {
      if (keeps_rule(begin, end, rule, element)) continue;
    }
    CINCH_TRY(check_row(field, begin, end, rule, element));
  }
  return Ok{};
}

Status check_field(const FieldInfo& field, const FieldPlace& place,
                   std::span<const std::uint8_t> bytes, const PayloadExpectation& expected) {
  const std::int64_t last_bits = place.num_elems * field.type.dtype.bits % 8;
  if (is_bit_packed(field.type.dtype) && last_bits != 0 && !bytes.empty() &&
      (bytes.back() >> last_bits) != 0)
    return corrupt(fmt::format("field {}: bits behind its last element are not zero", field.name));
  IndexRule rule{field.ascending};
  if (field.index_limit) {
    const auto limit = TRY(expected.info->exprs->eval_int(*field.index_limit, expected.env));
    rule.limit = static_cast<std::uint64_t>(std::max<std::int64_t>(limit, 0));
  }
  if (!rule.ascending && !field.index_limit) return Ok{};
  const std::uint8_t* data = bytes.data();
  if (field.type.dtype == kU32) {
    return check_indices(field, place, rule,
                         [data](std::int64_t i) { return load<std::uint32_t>(data + 4 * i); });
  }
  // A negative index of a signed type becomes a huge one, which every limit rejects.
  const int bits = field.type.dtype.bits;
  const int shift = is_signed_int(field.type.dtype) ? 64 - bits : 0;
  return check_indices(field, place, rule, [=](std::int64_t i) {
    const std::uint64_t raw = load_bits(data, i, bits);
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(raw << shift) >> shift);
  });
}

Status check_fields(std::span<const std::uint8_t> bytes, const PayloadExpectation& expected,
                    PayloadView& view) {
  const PayloadLayout& layout = view.layout;
  std::int64_t end = kPayloadHeaderBytes + static_cast<std::int64_t>(4 * view.counts.size());
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const FieldPlace& place = layout.fields[i];
    const FieldInfo& field = expected.info->wire.fields[i];
    for (std::int64_t at = end; at < place.offset; ++at) {
      if (bytes[static_cast<std::size_t>(at)] == 0) continue;
      return corrupt(fmt::format("byte {} before field {} is not zero", at, field.name));
    }
    const auto part = bytes.subspan(static_cast<std::size_t>(place.offset),
                                    static_cast<std::size_t>(place.size_bytes));
    // Fields of a marked payload are meaningless and never read.
    if (!view.header.is_non_finite()) {
      CINCH_TRY(check_field(field, place, part, expected));
    }
    view.fields.push_back(part);
    end = place.offset + place.size_bytes;
  }
  return Ok{};
}

}  // namespace

Result<std::vector<std::uint8_t>> read_payload_file(const std::filesystem::path& path) {
  return read_file_bytes(path, {.magic = kPayloadMagic, .size_at = kPayloadSizeOffset});
}

Result<PayloadHeader> read_payload_header(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < static_cast<std::size_t>(kPayloadHeaderBytes)) {
    return corrupt(
        fmt::format("{} bytes, a header alone has {}", bytes.size(), kPayloadHeaderBytes));
  }
  const std::uint8_t* at = bytes.data();
  if (load<std::uint32_t>(at) != kPayloadMagicWord) return corrupt("no magic at its start");
  if (const auto version = load<std::uint32_t>(at + 4); version != kPayloadFormatVersion) {
    return fail(ErrorKind::VersionMismatch,
                fmt::format("payload: format version {}, this program reads {}", version,
                            kPayloadFormatVersion));
  }
  PayloadHeader header;
  header.flags = load<std::uint32_t>(at + 8);
  if ((header.flags & ~kKnownFlags) != 0)
    return corrupt(fmt::format("unknown flags {:#x}", header.flags));
  header.fingerprint = {load<std::uint64_t>(at + 16), load<std::uint64_t>(at + 24)};
  header.decode_hash = load<std::uint64_t>(at + 32);
  header.rows = load<std::int64_t>(at + 40);
  header.cols = load<std::int64_t>(at + 48);
  header.payload_bytes = load<std::int64_t>(at + kPayloadSizeOffset);
  if (header.payload_bytes != static_cast<std::int64_t>(bytes.size())) {
    return corrupt(
        fmt::format("its header says {} bytes, it has {}", header.payload_bytes, bytes.size()));
  }
  return header;
}

Status read_payload(std::span<const std::uint8_t> bytes, const PayloadExpectation& expected,
                    PayloadView& view) {
  view.counts.clear();
  view.fields.clear();
  const auto header = TRY(read_payload_header(bytes));
  view.header = header;
  CINCH_TRY(check_expected(header, expected));
  if (expected.env.n > 0) {
    CINCH_TRY(read_counts(bytes, expected, view));
  }
  const auto word = load<std::uint32_t>(bytes.data() + kPayloadCheckOffset);
  const std::uint32_t computed = payload_check_word(bytes, view.counts.size());
  if (word != computed) {
    return corrupt(fmt::format(
        "check word {:08x}, its header and counts give {:08x}: {} or the word was changed", word,
        computed, view.counts.empty() ? "rows, columns" : "rows, columns, a count"));
  }
  CINCH_TRY(lay_out_payload(*expected.info, expected.env, view.counts, view.layout));
  if (view.layout.size_bytes != header.payload_bytes) {
    return corrupt(fmt::format("{} bytes, its shape and counts make {}", bytes.size(),
                               view.layout.size_bytes));
  }
  return check_fields(bytes, expected, view);
}

Result<PayloadView> read_payload(std::span<const std::uint8_t> bytes,
                                 const PayloadExpectation& expected) {
  PayloadView view;
  CINCH_TRY(read_payload(bytes, expected, view));
  return view;
}

}  // namespace cinch::rt
