// A quantiser that somebody else wrote: 16 levels, dense near zero, chosen for normally distributed
// numbers. Plain C++ without a word of Cinch.
#pragma once
#include <array>
#include <cstdint>

namespace levels {

inline constexpr std::array<float, 16> kLevels = {
    -2.7326f, -2.0690f, -1.6180f, -1.2562f, -0.9423f, -0.6568f, -0.3880f, -0.1284f,
    0.1284f,  0.3880f,  0.6568f,  0.9423f,  1.2562f,  1.6180f,  2.0690f,  2.7326f};

/// The level in the table for a code from 0 to 15.
inline float level(std::uint8_t code) {
  return kLevels[code];
}

/// The code of the level that is nearest to x, by halving the table four times.
inline std::uint8_t nearest(float x) {
  int code = 0;
  for (int step = 8; step > 0; step /= 2) {
    const float middle = 0.5f * (kLevels[code + step - 1] + kLevels[code + step]);
    if (x > middle) code += step;
  }
  return static_cast<std::uint8_t>(code);
}

}  // namespace levels
