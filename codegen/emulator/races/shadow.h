// The last accesses to each piece of memory, for finding races: up to two readers and a writer per
// 4 bytes, or per 2 or 1 after narrower accesses.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace cinch::emulator {

/// One access: its thread, the thread's clock, and its place in the text. A word, 0 for none.
class Access {
 public:
  static constexpr unsigned kThreadBits = 22, kClockBits = 24, kSiteBits = 17;

  Access() = default;
  /// The clock is at least 1. A site number that is too large counts as unknown.
  Access(std::uint32_t thread, std::uint32_t clock, std::uint32_t site, bool is_strong)
      : bits_(std::uint64_t{thread} << (kClockBits + kSiteBits + 1) |
              std::uint64_t{clock} << (kSiteBits + 1) |
              std::uint64_t{site >> kSiteBits ? 0 : site} << 1 | std::uint64_t{is_strong}) {}

  explicit operator bool() const { return bits_ != 0; }
  friend bool operator==(const Access&, const Access&) = default;
  bool is_strong() const { return (bits_ & 1) != 0; }
  std::uint32_t site() const {
    return static_cast<std::uint32_t>(bits_ >> 1) & ((1u << kSiteBits) - 1);
  }
  std::uint32_t clock() const {
    return static_cast<std::uint32_t>(bits_ >> (kSiteBits + 1)) & ((1u << kClockBits) - 1);
  }
  std::uint32_t thread() const {
    return static_cast<std::uint32_t>(bits_ >> (kClockBits + kSiteBits + 1));
  }

 private:
  std::uint64_t bits_ = 0;
};

struct Cell {
  Access write;
  // The last reader, and an earlier one of another warp or unordered with it.
  Access read[2];
};

class Shadow {
 public:
  static constexpr std::uint64_t kPageBytes = 4096;

  /// For offsets below `size_bytes`.
  explicit Shadow(std::uint64_t size_bytes);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  struct Page {
    std::uint64_t generation = 0;
    unsigned shift = 2;  // a cell is for 1 << shift bytes
    std::vector<Cell> cells;
  };
  /// The page of an offset, with cells fine enough for an access of `size` bytes there. Forgets
  /// entries of another generation.
  Page& page(std::uint64_t offset, std::uint64_t size, std::uint64_t generation) {
    Page* found = pages_[offset / kPageBytes];
    const std::uint64_t ends = offset | (offset + size);
    if (found && found->generation == generation && (ends & ((1u << found->shift) - 1)) == 0) {
      return *found;
    }
    return prepare(offset / kPageBytes, ends, generation);
  }

 private:
  Page& prepare(std::uint64_t index, std::uint64_t ends, std::uint64_t generation);

  std::uint64_t num_pages_;
  Page** pages_;  // by offset; null before the first access
  std::vector<std::unique_ptr<Page>> owned_;
};

}  // namespace cinch::emulator
