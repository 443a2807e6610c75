#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "runtime/collective/join_ranks.h"

namespace cinch::rt {
namespace {

using Inputs = std::span<const std::span<const std::uint8_t>>;

struct Join {
  DType dtype;
  RankReduction reduction;
};

template <typename T>
T element(std::span<const std::uint8_t> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// An integer whose width has no C++ type is kept extended in the next wider one.
template <typename T>
T finished(const Join& how, T value, std::size_t num_ranks) {
  if constexpr (std::is_floating_point_v<T>) {
    return how.reduction == RankReduction::Mean ? value / static_cast<T>(num_ranks) : value;
  } else {
    const int unused = static_cast<int>(sizeof(T)) * 8 - how.dtype.bits;
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<T>(static_cast<U>(value) << unused) >> unused);
  }
}

// Stored types that are joined without conversion.
template <typename T>
struct Plain {
  using Stored = T;
  static T read(T stored) { return stored; }
  static T write(T value) { return value; }
};
struct Half {
  using Stored = lang::u16;
  static float read(lang::u16 stored) { return lang::from_f16(stored); }
  static lang::u16 write(float value) { return lang::to_f16(value); }
};
struct Brain {
  using Stored = lang::u16;
  static float read(lang::u16 stored) { return lang::from_bf16(stored); }
  static lang::u16 write(float value) { return lang::to_bf16(value); }
};

// Number of elements to join at a time, rank by rank: rows that fit the nearest cache and the
// vectors.
constexpr std::size_t kBlock = 512;

template <typename Format>
void join_elements(const Join& how, Inputs inputs, std::span<std::uint8_t> output) {
  using Stored = typename Format::Stored;
  using Value = decltype(Format::read(Stored{}));
  const std::size_t count = output.size() / sizeof(Stored);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t num = std::min(kBlock, count - begin);
    Value values[kBlock];
    for (std::size_t i = 0; i < num; ++i) {
      values[i] = Format::read(element<Stored>(inputs[0], begin + i));
    }
    for (const auto input : inputs.subspan(1)) {
      for (std::size_t i = 0; i < num; ++i) {
        values[i] =
            join_values(how.reduction, values[i], Format::read(element<Stored>(input, begin + i)));
      }
    }
    for (std::size_t i = 0; i < num; ++i) {
      const Stored stored = Format::write(finished(how, values[i], inputs.size()));
      std::memcpy(output.data() + (begin + i) * sizeof(Stored), &stored, sizeof(Stored));
    }
  }
}

using Joiner = void (*)(const Join&, Inputs, std::span<std::uint8_t>);

Joiner integer_joiner(DType dtype) {
  const bool is_signed = is_signed_int(dtype);
  if (dtype.bits <= 8)
    return is_signed ? join_elements<Plain<lang::i8>> : join_elements<Plain<lang::u8>>;
  if (dtype.bits <= 16)
    return is_signed ? join_elements<Plain<lang::i16>> : join_elements<Plain<lang::u16>>;
  if (dtype.bits <= 32)
    return is_signed ? join_elements<Plain<lang::i32>> : join_elements<Plain<lang::u32>>;
  return is_signed ? join_elements<Plain<lang::i64>> : join_elements<Plain<lang::u64>>;
}

// Null if such a type cannot be joined.
Joiner find_joiner(DType dtype) {
  if (dtype == kF32) return join_elements<Plain<float>>;
  if (dtype == kF64) return join_elements<Plain<double>>;
  if (dtype == kF16) return join_elements<Half>;
  if (dtype == kBF16) return join_elements<Brain>;
  return is_int(dtype) ? integer_joiner(dtype) : nullptr;
}

// Joins part `part` of all ranks' arrays.
Status join_part(const CollectiveCall& call, Inputs inputs, std::size_t part) {
  std::vector<std::span<const std::uint8_t>> parts;
  parts.reserve(inputs.size());
  const std::size_t bytes = call.output.size();
  for (const auto input : inputs) parts.push_back(input.subspan(part * bytes, bytes));
  return join_arrays(call.dtype, call.collective.reduction, parts, call.output);
}

void copy_to(std::span<std::uint8_t> output, std::size_t offset,
             std::span<const std::uint8_t> bytes) {
  if (!bytes.empty()) std::memcpy(output.data() + offset, bytes.data(), bytes.size());
}

std::size_t output_bytes(const CollectiveCall& call, std::size_t num_ranks) {
  switch (call.collective.kind) {
    case CollectiveKind::AllGather:
      return call.input.size() * num_ranks;
    case CollectiveKind::ReduceScatter:
      return call.input.size() / num_ranks;
    default:
      return call.input.size();
  }
}

}  // namespace

bool can_join(DType dtype, RankReduction reduction) {
  return reduction != RankReduction::None && find_joiner(dtype) != nullptr;
}

Status join_arrays(DType dtype, RankReduction reduction, Inputs inputs,
                   std::span<std::uint8_t> output) {
  if (!can_join(dtype, reduction)) {
    return fail(ErrorKind::Internal, "ranks joined in " + dtype_name(dtype));
  }
  if (inputs.size() == 1) {
    copy_to(output, 0, inputs[0].first(output.size()));
  } else {
    find_joiner(dtype)({dtype, reduction}, inputs, output);
  }
  return Ok{};
}

Status give_part(const CollectiveCall& call, Inputs inputs, std::uint32_t rank) {
  const bool is_by_rank = call.collective.kind == CollectiveKind::AllToAll ||
                          call.collective.kind == CollectiveKind::ReduceScatter;
  if (call.output.size() != output_bytes(call, inputs.size()) ||
      (is_by_rank && call.input.size() % inputs.size() != 0)) {
    return fail(ErrorKind::Internal, "a collective whose result has another size");
  }
  switch (call.collective.kind) {
    case CollectiveKind::None:
    case CollectiveKind::BroadcastFrom:
    case CollectiveKind::SendReceive:
    case CollectiveKind::AllGatherCounted:
    case CollectiveKind::SendReceiveCounted:
      break;
    case CollectiveKind::AllReduce:
      return join_part(call, inputs, 0);
    case CollectiveKind::ReduceScatter:
      return join_part(call, inputs, rank);
    case CollectiveKind::AllGather:
      for (std::size_t w = 0; w < inputs.size(); ++w) {
        copy_to(call.output, w * call.input.size(), inputs[w]);
      }
      return Ok{};
    case CollectiveKind::AllToAll: {
      const std::size_t row = call.input.size() / inputs.size();
      for (std::size_t w = 0; w < inputs.size(); ++w) {
        copy_to(call.output, w * row, inputs[w].subspan(rank * row, row));
      }
      return Ok{};
    }
    case CollectiveKind::Broadcast:
      if (call.collective.root >= inputs.size()) {
        return fail(ErrorKind::OutOfRange, "there is no such root");
      }
      copy_to(call.output, 0, inputs[call.collective.root]);
      return Ok{};
  }
  return fail(ErrorKind::Internal, "a collective of an unknown kind");
}

// A world of one rank: every collective returns its input.

Result<RankStatus> meet_at(const RankPoint& point, RankExchange& ranks) {
  return point.call ? ranks.exchange(*point.call) : ranks.agree(point.own);
}

Result<RankStatus> LoneRank::exchange(const CollectiveCall& call) {
  const std::span<const std::uint8_t> inputs[] = {call.input};
  const RankOffer offers[] = {offer_of(call)};
  CINCH_TRY(is_routed(call.collective.kind) ? give_routed(call, inputs, offers, 0)
                                            : give_part(call, inputs, 0));
  return RankStatus::Good;
}

Result<RankStatus> LoneRank::agree(RankStatus own) {
  return own;
}

namespace {

using Offers = std::span<const RankOffer>;

constexpr std::uint32_t kNobody = UINT32_MAX;

// A program's negative number has the bits of its two's complement.
std::int32_t named(std::uint64_t rank) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(rank));
}

// For each receiver, the rank that sends to it.
Result<std::vector<std::uint32_t>> senders(std::string_view place, Offers offers) {
  std::vector<std::uint32_t> from(offers.size(), kNobody);
  for (std::uint32_t rank = 0; rank < offers.size(); ++rank) {
    const std::uint64_t to = offers[rank].to;
    if (to >= offers.size()) {
      return fail(ErrorKind::CheckFailed, fmt::format("{}: rank {} sends to rank {} of {}", place,
                                                      rank, named(to), offers.size()));
    }
    if (from[to] != kNobody) {
      return fail(ErrorKind::CheckFailed, fmt::format("{}: ranks {} and {} both send to rank {}",
                                                      place, from[to], rank, to));
    }
    from[to] = rank;
  }
  return from;
}

// The one rank that all name.
Result<std::uint32_t> root_of(std::string_view place, Offers offers) {
  const std::uint64_t root = offers[0].to;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].to == root) continue;
    return fail(ErrorKind::CheckFailed,
                fmt::format("{}: rank 0 names rank {}, rank {} names rank {}", place, named(root),
                            rank, named(offers[rank].to)));
  }
  if (root < offers.size()) return static_cast<std::uint32_t>(root);
  return fail(ErrorKind::CheckFailed,
              fmt::format("{}: there is no rank {} of {}", place, named(root), offers.size()));
}

tl::unexpected<Error> no_room() {
  return fail(ErrorKind::CorruptPayload, "an array that is longer than its receiver's");
}

Result<std::vector<ByteRange>> parts_from_sender(const CollectiveCall& call, Offers offers,
                                                 std::uint32_t rank) {
  const auto from = TRY(senders(call.place, offers));
  for (std::uint32_t to = 0; to < offers.size(); ++to) {
    const std::uint64_t sent = offers[from[to]].sent_bytes, room = offers[to].room_bytes;
    if (is_counted(call.collective.kind) ? sent > room : sent != room) return no_room();
  }
  const std::uint32_t sender = from[rank];
  std::vector<ByteRange> parts(offers.size());
  parts[sender].size = offers[sender].sent_bytes;
  return parts;
}

Result<std::vector<ByteRange>> parts_from_root(const CollectiveCall& call, Offers offers) {
  const std::uint32_t root = TRY(root_of(call.place, offers));
  const std::uint64_t sent = offers[root].sent_bytes;
  const auto fits = [sent](const RankOffer& offer) { return offer.room_bytes == sent; };
  if (!std::ranges::all_of(offers, fits)) return no_room();
  std::vector<ByteRange> parts(offers.size());
  parts[root].size = sent;
  return parts;
}

// All ranks compare with the smallest room, so that they find the same error.
Result<std::vector<ByteRange>> parts_in_rank_order(Offers offers) {
  std::uint64_t room = UINT64_MAX, end = 0;
  for (const RankOffer& offer : offers) room = std::min(room, offer.room_bytes);
  std::vector<ByteRange> parts;
  for (const RankOffer& offer : offers) {
    if (offer.sent_bytes > room - end) return no_room();
    parts.push_back({end, offer.sent_bytes});
    end += offer.sent_bytes;
  }
  return parts;
}

}  // namespace

RankOffer offer_of(const CollectiveCall& call) {
  return {call.to, call.input.size(), call.output.size()};
}

Result<std::vector<ByteRange>> received_parts(const CollectiveCall& call, Offers offers,
                                              std::uint32_t rank) {
  if (call.collective.kind == CollectiveKind::BroadcastFrom) return parts_from_root(call, offers);
  return names_receiver(call.collective.kind) ? parts_from_sender(call, offers, rank)
                                              : parts_in_rank_order(offers);
}

void end_routed(const CollectiveCall& call, std::span<const ByteRange> parts) {
  const std::uint64_t bytes =
      std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const ByteRange& part) { return sum + part.size; });
  std::ranges::fill(call.output.subspan(bytes), std::uint8_t{0});
  if (!is_counted(call.collective.kind)) return;
  const auto count = static_cast<std::uint32_t>(bytes / call.element_bytes);
  std::memcpy(call.received.data(), &count, sizeof count);
}

Status give_routed(const CollectiveCall& call,
                   std::span<const std::span<const std::uint8_t>> inputs, Offers offers,
                   std::uint32_t rank) {
  const auto parts = TRY(received_parts(call, offers, rank));
  for (std::size_t from = 0; from < inputs.size(); ++from) {
    const ByteRange& part = parts[from];
    if (part.size > 0) {
      std::memcpy(call.output.data() + part.offset, inputs[from].data(), part.size);
    }
  }
  end_routed(call, parts);
  return Ok{};
}

Status take_scalars(std::span<const BufferIndex> scalars, std::uint32_t storage_bits,
                    const ReadScalar& read, CollectiveCall& call) {
  const CollectiveKind kind = call.collective.kind;
  if (names_rank(kind)) {
    call.to = TRY(read(scalars.front()));
  }
  if (!is_counted(kind)) return Ok{};
  call.element_bytes = storage_bits / 8;
  const std::uint64_t bytes =
      std::uint64_t{TRY(read(scalars[scalars.size() - 2]))} * call.element_bytes;
  if (bytes > call.input.size()) {
    return fail(ErrorKind::Internal, "a collective of more elements than its array has");
  }
  call.input = call.input.first(bytes);
  return Ok{};
}

}  // namespace cinch::rt
