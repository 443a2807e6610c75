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

/// A section of elements behind another one computes anew what that one had, since the results of
/// both are not the same lanes at the same time. On a CPU a tile of values fits the nearest caches:
/// what takes long is kept there.
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
/// Of kernels over tiles. Values, stores and their order stay; a kernel may read less.
void keep_in_tiles(kir::Kernel& kernel);

/// What of a CPU program's text is compiled as one: a kernel, or several that do the same with
/// other buffers, sizes and parameters. Searching a list and searching everything, decoding and
/// decoding on top of a sum have many such kernels; they share a function, and each is a call of
/// it.
struct CpuUnit {
  std::vector<std::size_t> kernels;  // by index, ascending
  std::string text;
};

/// `texts` are the functions of the program's kernels, as emit_cpu_kernel prints them. Units come
/// in the order of their first kernels.
std::vector<CpuUnit> share_kernels(const kir::KernelProgram& program,
                                   const std::vector<std::string>& texts);

/// How often a square matrix of constants folds. Rows of a matrix may mirror themselves, as those
/// of cosine transforms do: half of the products of a vector with such a matrix give the other
/// half.
///
/// It folds once where the right half of each even row mirrors the
/// left half, and that of each odd row does with the other sign, bit by bit; once more where so
/// does the matrix of the left halves of its even rows. `elements`: f32 or f64, row by row; `side`:
/// of the matrix, above 0.
int matrix_folds(std::span<const std::uint8_t> elements, std::int64_t side);

}  // namespace cinch::codegen
