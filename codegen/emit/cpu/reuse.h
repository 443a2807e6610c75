// What the CPU emitter does not do twice: values across sections, functions across kernels, and
// products with matrices that mirror themselves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Keeps values from one element section to the next. Without it, a section computes again what an
/// earlier one computed, because both do not run at the same time. On a CPU, a tile of values fits
/// the nearest caches, so values that take long are kept there.
///
///   before:  elements:                    after:  elements:
///              %3 = load_at …                       %3 = load_at …
///              %4 = scalar.mul %3, %3               %4 = scalar.mul %3, %3
///              %5 = reduce %4                       local_store %4
///            group: …                               %5 = reduce %4
///            elements:                            group: …
///              %7 = load_at …                     elements:
///              %8 = scalar.mul %7, %7               %8 = local_load
///              store_linear %8                      store_linear %8
///
/// For kernels over tiles, and over rows that are no longer than a tile. Values, stores and their
/// order stay. A kernel may read less. What one element section of any kernel computes twice, it
/// computes once.
void keep_in_tiles(kir::Kernel& kernel, const HostExprPool& exprs);

/// A part of a CPU program's text: one kernel, or several that do the same with other buffers,
/// sizes and parameters. Searching a list and searching everything, or decoding and decoding on top
/// of a sum, have many such kernels. They share a function, and each kernel calls it.
struct CpuUnit {
  std::vector<std::size_t> kernels;  // by index, ascending
  std::string text;
};

/// `texts` are the functions of the program's kernels, as emit_cpu_kernel prints them. Units are in
/// the order of their first kernels.
std::vector<CpuUnit> share_kernels(const kir::KernelProgram& program,
                                   const std::vector<std::string>& texts);

/// How often a square matrix of constants folds. Rows may mirror themselves, as in cosine
/// transforms. Half of the products of a vector with such a matrix then give the other half.
///
/// The matrix folds once if, bit by bit, the right half of each even row mirrors the left half, and
/// the right half of each odd row mirrors it with the other sign. It folds once more if the matrix
/// of the left halves of its even rows folds. `elements` are f32 or f64, row by row; `side` is
/// above 0.
int matrix_folds(std::span<const std::uint8_t> elements, std::int64_t side);

}  // namespace cinch::codegen
