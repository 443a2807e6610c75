#include "codegen/emit/cpu/reuse.h"

#include <cstring>

namespace cinch::codegen {
namespace {

template <typename Bits>
class Matrix {
 public:
  Matrix(std::span<const std::uint8_t> elements, std::int64_t side)
      : elements_(elements), side_(side) {}

  int folds() const {
    int count = 0;
    while (folds_at(std::int64_t{1} << count)) ++count;
    return count;
  }

 private:
  static constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);

  Bits at(std::int64_t row, std::int64_t column) const {
    Bits bits;
    std::memcpy(&bits,
                elements_.data() + static_cast<std::size_t>(row * side_ + column) * sizeof bits,
                sizeof bits);
    return bits;
  }
  // Looks at rows that are multiples of `stride`, in columns below side / stride.
  bool folds_at(std::int64_t stride) const {
    const std::int64_t width = side_ / stride;
    if (width % 2 != 0 || side_ % stride != 0) return false;
    for (std::int64_t row = 0; row < side_; row += stride) {
      const Bits sign = row / stride % 2 == 0 ? Bits{0} : kSign;
      for (std::int64_t j = 0; j < width / 2; ++j) {
        if (at(row, width - 1 - j) != (at(row, j) ^ sign)) return false;
      }
    }
    return true;
  }

  std::span<const std::uint8_t> elements_;
  std::int64_t side_;
};

}  // namespace

int matrix_folds(std::span<const std::uint8_t> elements, std::int64_t side) {
  const std::size_t count = static_cast<std::size_t>(side * side);
  if (elements.size() == 8 * count) return Matrix<std::uint64_t>(elements, side).folds();
  return elements.size() == 4 * count ? Matrix<std::uint32_t>(elements, side).folds() : 0;
}

}  // namespace cinch::codegen
