// Offsets to pieces.
#include "runtime/call/bucket.h"

#include <fmt/format.h>

#include <cstring>

namespace cinch::rt {
namespace {

tl::unexpected<ListError> fail_at(std::size_t place, ErrorKind kind, std::string message) {
  return tl::unexpected<ListError>(ListError{{kind, std::move(message)}, place});
}

// Rounded up; no payload is so large that this overflows.
std::size_t aligned(std::size_t size_bytes) {
  return (size_bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

}  // namespace

ListStatus bucket_tensors(const Bucket& bucket, std::span<const std::int64_t> num_elems,
                          std::vector<TensorView>& to) {
  to.clear();
  if (Status status = check_tensor_dtype(bucket.dtype); !status) {
    return fail_at(kNoPlace, status.error().kind, status.error().message);
  }
  const bool is_packed = bucket.offsets.empty();
  if (!is_packed && bucket.offsets.size() != num_elems.size()) {
    return fail_at(
        kNoPlace, ErrorKind::InvalidArgument,
        fmt::format("{} offsets for {} tensors", bucket.offsets.size(), num_elems.size()));
  }
  std::int64_t behind_last = 0;
  for (std::size_t i = 0; i < num_elems.size(); ++i) {
    const std::int64_t begin = is_packed ? behind_last : bucket.offsets[i];
    if (begin < 0 || begin > bucket.num_elems || num_elems[i] > bucket.num_elems - begin) {
      return fail_at(i, ErrorKind::OutOfRange,
                     fmt::format("{} elements from {} on, the bucket has {}", num_elems[i], begin,
                                 bucket.num_elems));
    }
    behind_last = begin + num_elems[i];
    auto* const data =
        static_cast<std::uint8_t*>(bucket.data) + begin * element_bytes(bucket.dtype);
    to.emplace_back(data, bucket.dtype, num_elems[i]);
  }
  return Ok{};
}

Result<std::size_t> arena_bytes(std::span<const std::size_t> bounds) {
  std::size_t total = 0;
  for (const std::size_t bound : bounds) {
    if (__builtin_add_overflow(total, aligned(bound), &total)) {
      return fail(ErrorKind::Overflow, "payloads of more than 2^64 bytes");
    }
  }
  return total;
}

Status arena_rooms(const PayloadArena& arena, std::span<const std::size_t> bounds,
                   std::vector<std::span<std::uint8_t>>& to) {
  to.clear();
  if (arena.offsets.size() != bounds.size() || arena.sizes.size() != bounds.size()) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{} offsets and {} sizes for {} payloads", arena.offsets.size(),
                            arena.sizes.size(), bounds.size()));
  }
  const auto needed = arena_bytes(bounds);
  CINCH_TRY(needed);
  if (*needed > arena.capacity) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("payloads may take {} bytes, there are {}", *needed, arena.capacity));
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    arena.offsets[i] = begin;
    to.emplace_back(arena.data + begin, bounds[i]);
    begin += aligned(bounds[i]);
  }
  return Ok{};
}

std::size_t close_arena(const PayloadArena& arena) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < arena.offsets.size(); ++i) {
    const std::size_t begin = aligned(end);
    if (begin != arena.offsets[i]) {
      std::memmove(arena.data + begin, arena.data + arena.offsets[i], arena.sizes[i]);
      arena.offsets[i] = begin;
    }
    std::memset(arena.data + end, 0, begin - end);
    end = begin + arena.sizes[i];
  }
  return end;
}

ListStatus arena_payloads(const PayloadArena& arena, std::vector<PayloadBytes>& to) {
  to.clear();
  for (std::size_t i = 0; i < arena.offsets.size(); ++i) {
    const std::size_t begin = arena.offsets[i];
    if (begin > arena.capacity || arena.sizes[i] > arena.capacity - begin) {
      return fail_at(
          i, ErrorKind::OutOfRange,
          fmt::format("a payload of {} bytes at {} of {}", arena.sizes[i], begin, arena.capacity));
    }
    to.emplace_back(arena.data + begin, arena.sizes[i]);
  }
  return Ok{};
}

}  // namespace cinch::rt
