// Lists whose tensors, or payloads, lie in one buffer at offsets. Makes views of the pieces for
// SessionList and GpuSession. It does not access the memory, which may be a device's. Output
// vectors are reused, so that calls after the first allocate nothing.
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
  /// In elements, by entry of the call; empty: the tensors follow one another.
  std::span<const std::int64_t> offsets;
};

/// Makes views of the call's tensors, which have `num_elems` elements. Errors, with the entry's
/// index: InvalidArgument (offsets for another number of entries, a type that sessions do not
/// take), OutOfRange (a tensor outside the bucket).
ListStatus bucket_tensors(const Bucket& bucket, std::span<const std::int64_t> num_elems,
                          std::vector<TensorView>& to);

struct PayloadArena {
  std::uint8_t* data = nullptr;           // at a multiple of kArenaAlignment if it is a device's
  std::size_t capacity = 0;               // bytes
  std::span<std::size_t> offsets, sizes;  // in bytes, by entry of the call
};

/// Bytes of an arena for payloads of at most `bounds` bytes. Errors: Overflow.
Result<std::size_t> arena_bytes(std::span<const std::size_t> bounds);
/// Assigns room for payloads of at most `bounds` bytes, one after the other, and sets their
/// offsets. Errors: InvalidArgument (too small, offsets or sizes for another number of entries),
/// Overflow.
Status arena_rooms(const PayloadArena& arena, std::span<const std::size_t> bounds,
                   std::vector<std::span<std::uint8_t>>& to);
/// Moves payloads of `sizes` bytes together: each begins at the first multiple after the one
/// before, with zeros between. The memory is this process's. Returns the bytes in use.
std::size_t close_arena(const PayloadArena& arena);
/// Makes views of the payloads from offsets and sizes. Errors: OutOfRange, with the payload's
/// index.
ListStatus arena_payloads(const PayloadArena& arena, std::vector<PayloadBytes>& to);

}  // namespace cinch::rt
