// Addresses are reused as late as possible, so that freed memory stays recognisable.
#include "codegen/emulator/arena.h"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <string>

namespace cinch::emulator {
namespace {

constexpr std::uint64_t kAlign = 256;
constexpr std::uint64_t kRedZoneBytes = 512;
// Bytes of address range for each byte that may be allocated at a time.
constexpr std::uint64_t kSpread = 2;
constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 24;
constexpr std::uint64_t kSharedBytes = std::uint64_t{1} << 23;
constexpr std::uint64_t kPageBytes = 4096;

std::uint64_t round_up(std::uint64_t x, std::uint64_t unit) {
  return (x + unit - 1) / unit * unit;
}

void* reserve(std::uint64_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

}  // namespace

Arena::Arena(std::size_t memory_bytes)
    : memory_bytes_(memory_bytes),
      shared_begin_(round_up(memory_bytes * kSpread + kLeastBytes, kPageBytes)),
      size_bytes_(shared_begin_ + kSharedBytes),
      memory_(static_cast<char*>(reserve(size_bytes_))) {
  try {
    state_ = static_cast<std::uint8_t*>(reserve(size_bytes_));
  } catch (...) {
    ::munmap(memory_, size_bytes_);
    throw;
  }
  next_ = kRedZoneBytes;
}

Arena::~Arena() {
  ::munmap(memory_, size_bytes_);
  ::munmap(state_, size_bytes_);
}

rt::Result<void*> Arena::allocate(std::size_t size_bytes) {
  if (size_bytes > memory_bytes_ - allocated_bytes_) {
    return rt::fail(rt::ErrorKind::OutOfMemory,
                    "the emulated GPU has " + std::to_string(memory_bytes_) + " bytes, of which " +
                        std::to_string(allocated_bytes_) + " are in use: no " +
                        std::to_string(size_bytes) + " more");
  }
  const std::optional<std::uint64_t> place = find_place(size_bytes);
  if (!place) {
    return rt::fail(rt::ErrorKind::OutOfMemory,
                    "the emulated GPU's free memory is in pieces of less than " +
                        std::to_string(size_bytes) + " bytes");
  }
  forget_freed(*place, *place + size_bytes + kRedZoneBytes);
  allocations_[*place] = {*place, size_bytes, false};
  std::memset(state_ + *place, kAllocated, size_bytes);
  allocated_bytes_ += size_bytes;
  next_ = round_up(*place + size_bytes + kRedZoneBytes, kAlign);
  return static_cast<void*>(memory_ + *place);
}

// After the last allocation, else the first gap between live allocations.
std::optional<std::uint64_t> Arena::find_place(std::uint64_t size_bytes) {
  const std::uint64_t bytes = size_bytes + kRedZoneBytes;
  if (next_ + bytes <= shared_begin_) {
    const auto above = allocations_.lower_bound(next_);
    bool is_free = true;
    for (auto at = above; at != allocations_.end() && at->first < next_ + bytes; ++at) {
      is_free = is_free && at->second.is_freed;
    }
    if (is_free) return next_;
  }
  std::uint64_t begin = kRedZoneBytes;
  for (const auto& [offset, allocation] : allocations_) {
    if (allocation.is_freed) continue;
    if (begin + bytes <= offset) return begin;
    begin = round_up(offset + allocation.size_bytes + kRedZoneBytes, kAlign);
  }
  if (begin + bytes <= shared_begin_) return begin;
  return std::nullopt;
}

// Forgets freed allocations whose addresses are reused.
void Arena::forget_freed(std::uint64_t begin, std::uint64_t end) {
  auto at = allocations_.upper_bound(begin);
  if (at != allocations_.begin()) --at;
  while (at != allocations_.end() && at->first < end) {
    const Allocation& old = at->second;
    if (!old.is_freed || old.offset + old.size_bytes <= begin) {
      ++at;
      continue;
    }
    std::memset(state_ + old.offset, 0, old.size_bytes);
    at = allocations_.erase(at);
  }
}

rt::Status Arena::free(void* memory) {
  const auto at = allocations_.find(offset_of(memory));
  if (at == allocations_.end() || at->second.is_freed) {
    return rt::fail(rt::ErrorKind::InvalidArgument,
                    "no allocation of the emulated GPU begins at the address to be freed");
  }
  Allocation& allocation = at->second;
  allocation.is_freed = true;
  allocated_bytes_ -= allocation.size_bytes;
  std::memset(state_ + allocation.offset, kFreed, allocation.size_bytes);
  // Whole pages are returned to the system; they then read as zeros.
  const std::uint64_t begin = round_up(allocation.offset, kPageBytes);
  const std::uint64_t end = (allocation.offset + allocation.size_bytes) / kPageBytes * kPageBytes;
  if (end > begin) (void)::madvise(memory_ + begin, end - begin, MADV_DONTNEED);
  return rt::Ok{};
}

bool Arena::contains(const void* p, std::size_t size_bytes) const {
  const std::optional<Allocation> allocation = nearest(offset_of(p));
  if (!allocation || allocation->is_freed) return false;
  const std::uint64_t begin = offset_of(p) - allocation->offset;
  return begin <= allocation->size_bytes && size_bytes <= allocation->size_bytes - begin;
}

std::optional<Allocation> Arena::nearest(std::uint64_t offset) const {
  auto at = allocations_.upper_bound(offset);
  if (at == allocations_.begin()) return std::nullopt;
  return std::prev(at)->second;
}

std::optional<Allocation> Arena::next(std::uint64_t offset) const {
  const auto at = allocations_.upper_bound(offset);
  if (at == allocations_.end()) return std::nullopt;
  return at->second;
}

}  // namespace cinch::emulator
