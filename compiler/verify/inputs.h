// The gradients on which laws are tried: seven families, and an eighth for matrices, at sizes at
// the edges of words, tiles and buckets. Always the same.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/verify/subject.h"

namespace cinch::verify {

enum class Family : std::uint8_t {
  Normal,  // with deviation 0.01, like the next ones except for their tails
  Laplace,
  HeavyTailed,  // Student's t with 4 degrees of freedom
  Sparse,       // one element in 50 is not 0, and at least one
  Constant,
  Outlier,  // normal, one element 10000 times as large
  Zeros,
  LowRank,  // only matrices: a product of one column and one row, or the sum of two such
};
inline constexpr Family kFamilies[] = {Family::Normal, Family::Laplace,  Family::HeavyTailed,
                                       Family::Sparse, Family::Constant, Family::Outlier,
                                       Family::Zeros,  Family::LowRank};
const char* family_name(Family family);

struct Input {
  std::string name;  // "normal", or a file's
  Shape shape;
  std::vector<float> values;
  bool is_ordinary = false;  // spread as gradients usually are, neither constant nor mostly zeros
};

/// "normal, 33 elements" or "normal, 7 x 3".
std::string describe(const Input& input);

/// `variant` numbers gradients of one family and shape, for steps or ranks.
Input make_input(Family family, Shape shape, std::uint32_t variant = 0);
/// The same family in another draw; a file's own values are rotated by `variant` elements.
Input variant_of(const Input& input, std::uint32_t variant);

/// Variants 0, 1 … of an input.
std::vector<Input> variants_of(const Input& input, std::uint32_t count);
/// The input for one rank, its negative for the next, zeros for the third, and so on: a condition
/// that differs between ranks goes both ways.
std::vector<Input> opposed_to(const Input& input, std::uint32_t count);

/// Small shapes that are not multiples of anything, and some that are.
std::vector<Shape> edge_shapes(bool is_matrix);
/// Every family that a shape has, at every shape.
std::vector<Input> made_up_inputs(std::span<const Shape> shapes);

}  // namespace cinch::verify
