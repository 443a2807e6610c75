// Plain vector loops over memory, and a bare generator: the machine's own speed at reading,
// updating or writing an array, or drawing random words. `cinch bench` measures its floors with
// these.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cinch::bench {

struct StreamLoops {
  /// Returns a value that depends on all bytes, so that the compiler cannot drop a read.
  std::uint32_t (*read)(const std::uint32_t* words, std::size_t count);
  void (*update)(std::uint32_t* words, std::size_t count);
  void (*write)(std::uint32_t* words, std::size_t count, std::uint32_t value);
  /// Draws `count` words from `first` on into a buffer that stays in the nearest cache. Returns a
  /// value that depends on them.
  std::uint32_t (*draw)(std::uint32_t first, std::uint32_t count);
};

// One for each level of the instruction set; V3 and V4 on x86-64 only.
extern const StreamLoops kStreamLoopsBase, kStreamLoopsV3, kStreamLoopsV4;

}  // namespace cinch::bench
