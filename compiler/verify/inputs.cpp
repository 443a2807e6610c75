#include "compiler/verify/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/lang.h"

namespace cinch::verify {

namespace {

constexpr float kDeviation = 0.01f;
constexpr float kOutlier = 10000 * kDeviation;
constexpr std::uint32_t kSparseOneIn = 50;

lang::DrawStream stream_of(Family family, std::uint32_t variant, std::uint32_t site) {
  const std::uint32_t words[lang::kDrawWords] = {variant + 1,
                                                 static_cast<std::uint32_t>(family) + 1};
  return lang::draw_stream(words, site, false);
}

float laplace(const lang::DrawStream& stream, std::uint32_t index) {
  // Strictly within (0, 1), so that logarithms and quotients are finite.
  const float u = lang::random(stream, index) + 0x1p-25f;
  const float magnitude = -lang::log(u < 0.5f ? 2 * u : 2 * (1 - u));
  return u < 0.5f ? -magnitude : magnitude;
}

float student4(const lang::DrawStream& stream, const lang::DrawStream& other, std::uint32_t index) {
  float squares = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const float x = lang::normal(other, 4 * index + i);
    squares += x * x;
  }
  return lang::normal(stream, index) / std::sqrt(squares / 4 + 1e-6f);
}

void fill_sparse(std::vector<float>& values, const lang::DrawStream& stream,
                 const lang::DrawStream& places) {
  bool has_one = false;
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const bool is_kept = lang::random_bits(places, i) % kSparseOneIn == 0;
    values[i] = is_kept ? kDeviation * lang::normal(stream, i) : 0.0f;
    has_one |= is_kept;
  }
  if (!has_one && !values.empty()) values[values.size() / 2] = kDeviation;
}

// A column times a row; for every second variant, the sum of two of these.
void fill_low_rank(std::vector<float>& values, std::int64_t cols, std::uint32_t variant,
                   const lang::DrawStream& stream, const lang::DrawStream& other) {
  const auto width = static_cast<std::uint32_t>(cols);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const std::uint32_t row = i / width, col = i % width;
    float sum = lang::normal(stream, 2 * row) * lang::normal(other, 2 * col);
    if (variant % 2 == 1)
      sum += lang::normal(stream, 2 * row + 1) * lang::normal(other, 2 * col + 1);
    values[i] = kDeviation * sum;
  }
}

void fill(Family family, std::uint32_t variant, std::int64_t cols, std::vector<float>& values) {
  const lang::DrawStream stream = stream_of(family, variant, 0);
  const lang::DrawStream other = stream_of(family, variant, 1);
  const auto each = [&](auto&& value) {
    for (std::uint32_t i = 0; i < values.size(); ++i) values[i] = value(i);
  };
  switch (family) {
    case Family::Normal:
    case Family::Outlier:
      each([&](std::uint32_t i) { return kDeviation * lang::normal(stream, i); });
      if (family == Family::Outlier && !values.empty())
        values[(values.size() / 3 + variant) % values.size()] = kOutlier;
      break;
    case Family::Laplace:
      each([&](std::uint32_t i) { return kDeviation * laplace(stream, i); });
      break;
    case Family::HeavyTailed:
      each([&](std::uint32_t i) { return kDeviation * student4(stream, other, i); });
      break;
    case Family::Sparse:
      fill_sparse(values, stream, other);
      break;
    case Family::Constant:
      each([&](std::uint32_t) {
        return kDeviation * static_cast<float>(variant % 2 == 0 ? 1 : -1);
      });
      break;
    case Family::LowRank:
      fill_low_rank(values, cols, variant, stream, other);
      break;
    case Family::Zeros:
      break;
  }
}

}  // namespace

const char* family_name(Family family) {
  constexpr const char* kNames[] = {"normal",   "laplace", "heavy-tailed", "sparse",
                                    "constant", "outlier", "zeros",        "low-rank"};
  return kNames[static_cast<std::size_t>(family)];
}

std::string describe(const Input& input) {
  if (input.shape.cols == 1) {
    const std::int64_t n = input.shape.num_elems();
    return fmt::format("{}, {} element{}", input.name, n, n == 1 ? "" : "s");
  }
  return fmt::format("{}, {} x {}", input.name, input.shape.rows, input.shape.cols);
}

Input make_input(Family family, Shape shape, std::uint32_t variant) {
  Input input{family_name(family), shape, {}, family <= Family::HeavyTailed};
  input.values.resize(static_cast<std::size_t>(shape.num_elems()));
  fill(family, variant, shape.cols, input.values);
  return input;
}

Input variant_of(const Input& input, std::uint32_t variant) {
  for (Family family : kFamilies) {
    if (input.name == family_name(family)) return make_input(family, input.shape, variant);
  }
  Input moved = input;
  if (!moved.values.empty()) {
    const std::size_t by = variant % moved.values.size();
    std::rotate(moved.values.begin(), moved.values.begin() + static_cast<std::ptrdiff_t>(by),
                moved.values.end());
  }
  return moved;
}

std::vector<Input> variants_of(const Input& input, std::uint32_t count) {
  std::vector<Input> variants;
  variants.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) variants.push_back(variant_of(input, i));
  return variants;
}

std::vector<Input> opposed_to(const Input& input, std::uint32_t count) {
  std::vector<Input> opposed(count, input);
  constexpr float kFactors[] = {1, -1, 0};
  for (std::uint32_t i = 0; i < count; ++i) {
    for (float& value : opposed[i].values) value *= kFactors[i % 3];
  }
  return opposed;
}

std::vector<Shape> edge_shapes(bool is_matrix) {
  if (is_matrix) return {{1, 1}, {7, 3}, {1, 33}, {33, 1}, {32, 16}, {40, 25}, {65, 63}};
  return {{1}, {2}, {7}, {33}, {513}, {1000}, {4099}};
}

std::vector<Input> made_up_inputs(std::span<const Shape> shapes) {
  std::vector<Input> inputs;
  for (const Shape& shape : shapes) {
    for (Family family : kFamilies) {
      if (family != Family::LowRank || shape.cols > 1) inputs.push_back(make_input(family, shape));
    }
  }
  return inputs;
}

}  // namespace cinch::verify
