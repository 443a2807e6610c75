// Matrices of constants whose rows mirror themselves, as those of cosine transforms do: half of the
// products of a vector with such a matrix give the other half.
#pragma once
#include <cstdint>
#include <span>

namespace cinch::codegen {

/// How often a square matrix folds. It folds once where the right half of each even row mirrors the
/// left half, and that of each odd row does with the other sign, bit by bit; once more where so
/// does the matrix of the left halves of its even rows. `elements`: f32 or f64, row by row; `side`:
/// of the matrix, above 0.
int matrix_folds(std::span<const std::uint8_t> elements, std::int64_t side);

}  // namespace cinch::codegen
