// Calls on lists of tensors: their arguments, and errors with the tensor at fault.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "runtime/call/tensor_facts.h"
#include "runtime/core/error.h"
#include "runtime/core/use_flag.h"

namespace cinch::rt {

struct ListTensor {
  std::int64_t rows = 0, cols = 1;      // a vector of n elements is [n, 1]
  std::uint32_t tensor = 0, piece = 0;  // numbers for draws: different ones draw differently
};

inline constexpr std::size_t kNoPlace = SIZE_MAX;

/// An error, and the entry of the call's arrays at fault.
struct ListError {
  Error error;
  std::size_t place = kNoPlace;
};
template <typename T>
using ListResult = tl::expected<T, ListError>;
using ListStatus = ListResult<Ok>;

struct ListCall {
  std::uint64_t step = 0;
  /// Numbers of the call's tensors, each at most once; empty: 0 … number of entries - 1.
  std::span<const std::size_t> which;
};

/// The place of an encoded payload. It is copied to `room`; if that is empty, `bytes` points into
/// the list and is valid until its next call. `bytes` is set in both cases.
struct PayloadSlot {
  std::span<std::uint8_t> room;
  std::span<const std::uint8_t> bytes;
};

using PayloadBytes = std::span<const std::uint8_t>;

/// As guarded_use(), for lists.
template <typename Call>
auto guarded_list(UseFlag& in_use, const Call& call) -> decltype(call()) {
  decltype(call()) result = tl::unexpected<ListError>(ListError{});
  Status status = guarded_use(in_use, [&]() -> Status {
    result = call();
    return Ok{};
  });
  if (!status) return tl::unexpected<ListError>(ListError{std::move(status.error())});
  return result;
}

}  // namespace cinch::rt
