// Packed indices of a payload, read bit by bit as docs/payload.md says.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace cinch::testing {

// Reads `num` ascending indices below `below` from the bytes of their field; fewer if bits are
// missing.
inline std::vector<int> rice_indices(std::span<const std::uint8_t> bytes, std::size_t num,
                                     std::size_t below) {
  const auto bit_at = [&](std::size_t bit) { return bytes[bit / 8] >> bit % 8 & 1; };
  const std::size_t mean = std::max<std::size_t>(below / std::max<std::size_t>(num, 1), 1);
  const auto width = static_cast<std::size_t>(std::bit_width(mean)) - 1;
  std::vector<int> indices(num);
  std::size_t bit = 0, index = 0;
  for (int& gap : indices) {
    for (; bit < 8 * bytes.size() && bit_at(bit) == 0; ++bit) gap += 1 << width;
    ++bit;
  }
  if (bit + num * width > 8 * bytes.size()) return {};
  for (int& gap : indices) {
    for (std::size_t i = 0; i < width; ++i) gap += bit_at(bit++) << i;
    index += static_cast<std::size_t>(gap);
    gap = static_cast<int>(index++);
  }
  return indices;
}

}  // namespace cinch::testing
