#include "runtime/call/summed_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "runtime/call/joins.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/core/lang.h"
#include "runtime/core/numbers/floats.h"

namespace cinch::rt {
namespace {

// The type in which a field is sent; every transport can add it. NCCL has no integers of 16 bits.
std::optional<DType> travelling_type(DType dtype, RankReduction reduction, std::uint32_t world) {
  if (is_float(dtype)) return dtype.bits == 8 ? kF32 : dtype;
  const auto times = static_cast<__int128>(reduction == RankReduction::Sum ? world : 1);
  const bool is_signed = is_signed_int(dtype);
  const __int128 most = times * ((static_cast<__int128>(1) << (dtype.bits - (is_signed ? 1 : 0))) -
                                 (is_signed ? 0 : 1));
  for (const DType candidate : {kI8, kI32, kI64}) {
    const __int128 limit = static_cast<__int128>(1) << (candidate.bits - (is_signed ? 1 : 0));
    const bool holds = is_signed ? most <= limit : most < limit;
    if (holds) return is_signed ? candidate : DType{DTypeKind::UInt, candidate.bits};
  }
  return std::nullopt;
}

// Number of elements to convert at a time, on the stack; they fill whole bytes for any width.
constexpr std::int64_t kBlock = 512;
using Block = std::array<std::uint64_t, kBlock>;

template <typename Body>
void for_blocks(std::int64_t num_elems, const Body& body) {
  for (std::int64_t begin = 0; begin < num_elems; begin += kBlock) {
    body(begin, std::min(kBlock, num_elems - begin));
  }
}

// Widens f8 to f32 and integers to wider ones.
std::uint64_t widened(DType dtype, std::uint64_t word) {
  if (dtype == kF8E4M3) {
    return std::bit_cast<std::uint32_t>(lang::from_f8e4m3(static_cast<lang::u8>(word)));
  }
  if (dtype == kF8E5M2) {
    return std::bit_cast<std::uint32_t>(lang::from_f8e5m2(static_cast<lang::u8>(word)));
  }
  if (!is_signed_int(dtype)) return word;
  const int unused = 64 - dtype.bits;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(word << unused) >> unused);
}

// The inverse; nothing if the value does not fit.
std::optional<std::uint64_t> narrowed(DType dtype, std::uint64_t word) {
  const float value = std::bit_cast<float>(static_cast<std::uint32_t>(word));
  if (is_float(dtype)) return f8_of_sum(dtype, value);
  const std::uint64_t low = word & (~std::uint64_t{0} >> (64 - dtype.bits));
  if (widened(dtype, low) != word) return std::nullopt;
  return low;
}

std::uint64_t word_at(DType dtype, const std::uint8_t* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, dtype.bits / 8);
  return is_signed_int(dtype) ? widened(dtype, word) : word;
}

void spread_field(DType dtype, std::span<const std::uint8_t> field, std::int64_t num_elems,
                  DType travels_as, std::uint8_t* to) {
  if (dtype == travels_as) {
    if (!field.empty()) std::memcpy(to, field.data(), field.size());
    return;
  }
  const std::size_t size = travels_as.bits / 8;
  Block room;
  for_blocks(num_elems, [&](std::int64_t begin, std::int64_t num) {
    const auto first = static_cast<std::size_t>(packed_bytes(dtype, begin));
    const auto bytes = static_cast<std::size_t>(packed_bytes(dtype, num));
    const auto words = std::span(room).first(static_cast<std::size_t>(num));
    unpack_elements(dtype, field.subspan(first, bytes), words);
    for (const std::uint64_t word : words) {
      const std::uint64_t wide = widened(dtype, word);
      std::memcpy(to, &wide, size);
      to += size;
    }
  });
}

// NaNs have one form in payloads, whatever a transport has made of them.
void copy_floats(DType dtype, std::span<const std::uint8_t> joined, std::uint8_t* to) {
  const auto copy = [&]<typename T>(T exponent, T mask, T canonical) {
    for (std::size_t i = 0; i < joined.size(); i += sizeof(T)) {
      T word;
      std::memcpy(&word, joined.data() + i, sizeof word);
      if ((word & mask) > exponent) word = canonical;
      std::memcpy(to + i, &word, sizeof word);
    }
  };
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  if (dtype == kF16) return copy(std::uint16_t{0x7c00}, std::uint16_t{0x7fff}, lang::to_f16(kNaN));
  if (dtype == kBF16) {
    return copy(std::uint16_t{0x7f80}, std::uint16_t{0x7fff}, lang::to_bf16(kNaN));
  }
  if (dtype == kF32) {
    return copy(std::uint32_t{0x7f800000}, std::uint32_t{0x7fffffff},
                std::bit_cast<std::uint32_t>(lang::canonical(kNaN)));
  }
  copy(std::uint64_t{0x7ff0000000000000}, std::uint64_t{0x7fffffffffffffff},
       std::bit_cast<std::uint64_t>(lang::canonical(static_cast<double>(kNaN))));
}

// Returns false if an element does not fit.
bool join_field(DType dtype, DType travelled_as, std::span<const std::uint8_t> joined,
                std::uint8_t* to) {
  const bool is_same = dtype == travelled_as;
  if (is_same && is_float(dtype)) {
    copy_floats(dtype, joined, to);
    return true;
  }
  if (is_same) {
    if (!joined.empty()) std::memcpy(to, joined.data(), joined.size());
    return true;
  }
  const std::size_t size = travelled_as.bits / 8;
  bool fits = true;
  Block room;
  for_blocks(static_cast<std::int64_t>(joined.size() / size),
             [&](std::int64_t begin, std::int64_t num) {
               const auto words = std::span(room).first(static_cast<std::size_t>(num));
               const std::uint8_t* from = joined.data() + static_cast<std::size_t>(begin) * size;
               for (std::uint64_t& to_pack : words) {
                 const auto word = narrowed(dtype, word_at(travelled_as, from));
                 fits = fits && word;
                 to_pack = word.value_or(0);
                 from += size;
               }
               const auto bytes = static_cast<std::size_t>(packed_bytes(dtype, num));
               pack_elements(dtype, words, {to + packed_bytes(dtype, begin), bytes});
             });
  return fits;
}

// The array's next elements of a field.
template <typename Byte>
std::span<Byte> take(std::span<Byte>& array, DType dtype, std::int64_t num_elems) {
  const auto taken = array.first(static_cast<std::size_t>(num_elems) * (dtype.bits / 8));
  array = array.subspan(taken.size());
  return taken;
}

void set_mark(std::span<std::uint8_t> at, DType dtype, bool is_marked) {
  std::memset(at.data(), 0, at.size());
  if (!is_marked) return;
  if (dtype == kF64) {
    constexpr double kOne = 1;
    std::memcpy(at.data(), &kOne, sizeof kOne);
    return;
  }
  const std::uint64_t one = dtype == kF32    ? std::bit_cast<std::uint32_t>(1.0f)
                            : dtype == kF16  ? lang::to_f16(1.0f)
                            : dtype == kBF16 ? lang::to_bf16(1.0f)
                                             : 1;
  std::memcpy(at.data(), &one, at.size());
}

}  // namespace

std::size_t SummedArrays::array_for(DType dtype, RankReduction reduction) {
  const auto found = std::ranges::find_if(kinds_, [&](const SumArray& kind) {
    return kind.dtype == dtype && kind.reduction == reduction;
  });
  if (found != kinds_.end()) return static_cast<std::size_t>(found - kinds_.begin());
  kinds_.push_back({dtype, reduction, 0});
  return kinds_.size() - 1;
}

std::optional<SummedArrays> SummedArrays::of(const ProgramInfo& info, std::uint32_t world) {
  if (!has_summable_wire(info)) return std::nullopt;
  SummedArrays made;
  for (const FieldInfo& field : info.wire.fields) {
    const RankReduction reduction = reduction_of(field.sum);
    const auto travels_as = travelling_type(field.type.dtype, reduction, world);
    if (!travels_as) return std::nullopt;
    made.fields_.push_back({field.name, field.type.dtype, made.array_for(*travels_as, reduction)});
  }
  const auto sum = std::ranges::find(made.kinds_, RankReduction::Sum, &SumArray::reduction);
  made.mark_at_ = sum != made.kinds_.end() ? static_cast<std::size_t>(sum - made.kinds_.begin())
                                           : made.array_for(kU32, RankReduction::Sum);
  return made;
}

void SummedArrays::list_arrays(const PayloadLayout& layout, std::vector<SumArray>& arrays) const {
  arrays = kinds_;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    arrays[fields_[i].array].num_elems += layout.fields[i].num_elems;
  }
  ++arrays[mark_at_].num_elems;
}

void SummedArrays::find_fields(const PayloadLayout& layout,
                               std::vector<SummedField>& fields) const {
  fields.clear();
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const std::size_t array = fields_[i].array;
    std::size_t first_byte = 0;
    for (const SummedField& before : fields) {
      if (before.array != array) continue;
      const auto elems = static_cast<std::size_t>(before.place.num_elems);
      first_byte = before.first_byte + elems * (before.travels_as.bits / 8);
    }
    fields.push_back({fields_[i].dtype, kinds_[array].dtype, array, first_byte, layout.fields[i]});
  }
}

bool SummedArrays::moves_only() const {
  return std::ranges::all_of(
      fields_, [this](const Field& field) { return field.dtype == kinds_[field.array].dtype; });
}

std::vector<SumArray> SummedArrays::arrays(const PayloadLayout& layout) const {
  std::vector<SumArray> made;
  list_arrays(layout, made);
  return made;
}

Status SummedArrays::spread(std::span<const std::uint8_t> payload, const PayloadLayout& layout,
                            std::span<std::span<std::uint8_t>> arrays) const {
  const auto header = TRY(read_payload_header(payload));
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const FieldPlace& place = layout.fields[i];
    const std::size_t array = fields_[i].array;
    const DType travels_as = kinds_[array].dtype;
    spread_field(fields_[i].dtype,
                 payload.subspan(static_cast<std::size_t>(place.offset),
                                 static_cast<std::size_t>(place.size_bytes)),
                 place.num_elems, travels_as,
                 take(arrays[array], travels_as, place.num_elems).data());
  }
  const DType of_mark = kinds_[mark_at_].dtype;
  set_mark(take(arrays[mark_at_], of_mark, 1), of_mark, header.is_non_finite());
  return Ok{};
}

Status SummedArrays::join(std::span<std::span<const std::uint8_t>> arrays,
                          const PayloadLayout& layout, std::span<std::uint8_t> payload) const {
  const DefaultFloatEnvironment environment;
  const auto mark = arrays[mark_at_].last(kinds_[mark_at_].dtype.bits / 8);
  const bool is_marked = std::ranges::any_of(mark, [](std::uint8_t byte) { return byte != 0; });
  auto header = TRY(read_payload_header(payload));
  header.flags = is_marked ? kPayloadNonFinite : 0;
  write_payload_frame(payload, header, {}, layout);
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const FieldPlace& place = layout.fields[i];
    std::uint8_t* const to = payload.data() + place.offset;
    if (is_marked) {
      std::memset(to, 0, static_cast<std::size_t>(place.size_bytes));
      continue;
    }
    const std::size_t array = fields_[i].array;
    const DType travelled_as = kinds_[array].dtype;
    const auto joined = take(arrays[array], travelled_as, place.num_elems);
    if (!join_field(fields_[i].dtype, travelled_as, joined, to)) {
      return fail(ErrorKind::Overflow, fmt::format("the sum over ranks of field {} does not fit {}",
                                                   fields_[i].name, dtype_name(fields_[i].dtype)));
    }
  }
  return Ok{};
}

}  // namespace cinch::rt
