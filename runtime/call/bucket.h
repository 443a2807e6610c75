// Lists whose tensors lie in one buffer at offsets, and whose payloads do: views of their pieces
// for SessionList and GpuSession. Memory is not looked at, so it may be a device's. Vectors that
// are given are filled, so that a call after the first allocates nothing.
//
//   bucket_tensors(bucket, num_elems, tensors);
//   arena_rooms(arena, bounds, rooms);    // sets arena.offsets
//   …                                     // encode into rooms; set arena.sizes
//   close_arena(arena);                   // payloads without gaps, ready to be sent
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/call/list_call.h"
#include "runtime/call/tensor_view.h"

namespace cinch::rt {

/// Payloads in one buffer begin at multiples of this.
inline constexpr std::size_t kArenaAlignment = 16;

struct Bucket {
  void* data = nullptr;
  DType dtype = kF32;
  std::int64_t num_elems = 0;  // at `data`
  /// In elements, by entry of the call; empty: one behind the other.
  std::span<const std::int64_t> offsets;
};

/// The tensors of a call, which have `num_elems` elements. Errors: InvalidArgument (offsets for
/// another number of entries, a type that sessions do not take), OutOfRange (a tensor that does not
/// lie in the bucket), both with their place.
ListStatus bucket_tensors(const Bucket& bucket, std::span<const std::int64_t> num_elems,
                          std::vector<TensorView>& to);

struct PayloadArena {
  std::uint8_t* data = nullptr;           // at a multiple of kArenaAlignment where it is a device's
  std::size_t capacity = 0;               // bytes
  std::span<std::size_t> offsets, sizes;  // in bytes, by entry of the call
};

/// Bytes of an arena whose payloads take at most `bounds`. Errors: Overflow.
Result<std::size_t> arena_bytes(std::span<const std::size_t> bounds);
/// Room for payloads of at most `bounds` bytes, one behind the other, and their offsets. Errors:
/// InvalidArgument (too small, offsets or sizes for another number of entries), Overflow.
Status arena_rooms(const PayloadArena& arena, std::span<const std::size_t> bounds,
                   std::vector<std::span<std::uint8_t>>& to);
/// Moves payloads of `sizes` bytes together, each to the first multiple behind the one before it,
/// with zeros between them; in memory of this process. Gives the bytes in use.
std::size_t close_arena(const PayloadArena& arena);
/// The payloads by offsets and sizes. Errors: OutOfRange, with its place.
ListStatus arena_payloads(const PayloadArena& arena, std::vector<PayloadBytes>& to);

}  // namespace cinch::rt
