// The loops of stream_loops.h for one level of the instruction set. The build writes one source for
// each level: it defines the level's lanes and the name of its loops, and includes this. Do not
// include headers with inline functions of their own here: the linker would use one level's code
// for all.
#include "compiler/bench/stream_loops.h"
#include "runtime/core/lang.h"

namespace cinch::bench {
namespace {

// As many words as loads see of a kernel's tile.
constexpr std::uint32_t kDrawnAtOnce = 1024;

std::uint32_t read_words(const std::uint32_t* words, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}
void update_words(std::uint32_t* words, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) words[i] += 1;
}
void write_words(std::uint32_t* words, std::size_t count, std::uint32_t value) {
  for (std::size_t i = 0; i < count; ++i) words[i] = value;
}
std::uint32_t draw_words(std::uint32_t first, std::uint32_t count) {
  const lang::DrawStream stream{1, 2, 3, 4, 5};
  lang::u32 buffer[kDrawnAtOnce];
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < count; i += kDrawnAtOnce) {
    lang::fill_random_bits<CINCH_BENCH_LANES>(stream, first + i, kDrawnAtOnce, buffer);
    sum += buffer[i % kDrawnAtOnce];
  }
  return sum;
}

}  // namespace

const StreamLoops CINCH_BENCH_LOOPS = {read_words, update_words, write_words, draw_words};

}  // namespace cinch::bench
