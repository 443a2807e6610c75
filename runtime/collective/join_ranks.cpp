// Bodies of join_ranks.h.
#include "runtime/collective/join_ranks.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/collective/join_values.h"
#include "runtime/core/lang.h"

namespace cinch::rt {
namespace {

using Inputs = std::span<const std::span<const std::uint8_t>>;

template <typename T>
T element(std::span<const std::uint8_t> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

// Integers of a width between two that have a type are kept extended in the wider one.
template <typename T>
T finished(const CollectiveCall& call, T value, std::size_t num_ranks) {
  if constexpr (std::is_floating_point_v<T>) {
    return call.collective.reduction == RankReduction::Mean ? value / static_cast<T>(num_ranks)
                                                            : value;
  } else {
    const int unused = static_cast<int>(sizeof(T)) * 8 - call.dtype.bits;
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<T>(static_cast<U>(value) << unused) >> unused);
  }
}

// Elements begin .. of all ranks' arrays, as many as the output holds.
template <typename T>
void join_elements(const CollectiveCall& call, Inputs inputs, std::size_t begin) {
  const std::size_t count = call.output.size() / sizeof(T);
  for (std::size_t i = 0; i < count; ++i) {
    T value = element<T>(inputs[0], begin + i);
    for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
      value = join_values(call.collective.reduction, value, element<T>(inputs[rank], begin + i));
    }
    value = finished(call, value, inputs.size());
    std::memcpy(call.output.data() + i * sizeof(T), &value, sizeof(T));
  }
}

Status join_all(const CollectiveCall& call, Inputs inputs, std::size_t part) {
  const std::size_t elements = call.output.size();
  if (call.dtype == kF32) {
    join_elements<float>(call, inputs, part * elements / sizeof(float));
  } else if (call.dtype == kF64) {
    join_elements<double>(call, inputs, part * elements / sizeof(double));
  } else if (is_int(call.dtype) && call.dtype.bits > 32) {
    is_signed_int(call.dtype)
        ? join_elements<lang::i64>(call, inputs, part * elements / sizeof(lang::i64))
        : join_elements<lang::u64>(call, inputs, part * elements / sizeof(lang::u64));
  } else if (is_int(call.dtype) && call.dtype.bits == 32) {
    is_signed_int(call.dtype)
        ? join_elements<lang::i32>(call, inputs, part * elements / sizeof(lang::i32))
        : join_elements<lang::u32>(call, inputs, part * elements / sizeof(lang::u32));
  } else {
    return fail(ErrorKind::Internal, "ranks joined in " + dtype_name(call.dtype));
  }
  return Ok{};
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

Status give_part(const CollectiveCall& call, Inputs inputs, std::uint32_t rank) {
  const bool is_by_rank = call.collective.kind == CollectiveKind::AllToAll ||
                          call.collective.kind == CollectiveKind::ReduceScatter;
  if (call.output.size() != output_bytes(call, inputs.size()) ||
      (is_by_rank && call.input.size() % inputs.size() != 0)) {
    return fail(ErrorKind::Internal, "a collective whose result has another size");
  }
  switch (call.collective.kind) {
    case CollectiveKind::None:
      break;
    case CollectiveKind::AllReduce:
      return join_all(call, inputs, 0);
    case CollectiveKind::ReduceScatter:
      return join_all(call, inputs, rank);
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
  return fail(ErrorKind::Internal, "a collective of no kind");
}

}  // namespace cinch::rt
