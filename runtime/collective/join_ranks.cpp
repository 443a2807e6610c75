// Bodies of join_ranks.h.
#include "runtime/collective/join_ranks.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/collective/routes.h"
#include "runtime/core/lang.h"

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

}  // namespace cinch::rt
