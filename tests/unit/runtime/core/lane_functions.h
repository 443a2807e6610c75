// Every function of the language on arrays of raw 64-bit words, compiled several times: as scalars
// and as vectors, for several instruction sets. The tests compare them bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cinch::lane_tests {

/// The meaning of the input words.
enum class InputKind { F32, F64, I32, U32, I64, U64, Bits16, Bits8 };

/// out[i] = bits of f(a[i], b[i], c[i]); n is a multiple of 16.
struct LaneFunction {
  const char* name;
  InputKind input;
  void (*run)(const std::uint64_t* a, const std::uint64_t* b, const std::uint64_t* c,
              std::uint64_t* out, std::size_t n);
};

/// The same list in the same order from every variant; `lanes` is 1, 4, 8 or 16.
std::span<const LaneFunction> functions_x86_64(int lanes);
std::span<const LaneFunction> functions_portable(int lanes);
std::span<const LaneFunction> functions_x86_64_v3(int lanes);
std::span<const LaneFunction> functions_x86_64_v4(int lanes);

}  // namespace cinch::lane_tests
