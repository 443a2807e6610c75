// Hand-written kernel programs that together hold every instruction: for tests of the text form,
// the verifier, costs and emitters.
#pragma once
#include "codegen/kir/builder.h"
#include "codegen/kir/kir.h"

namespace cinch::kir {

/// Sum, sign bits and a maximum of a gradient of n elements; finishes partials, then scales by a
/// parameter.
KernelProgram sample_reduce();
/// Indices and values above a threshold: running sum, look-back, predicated stores at
/// data-dependent places.
KernelProgram sample_compact();
/// Rows of `bucket` elements with norm, stochastic rounding and packing into codes of `bits` bits.
KernelProgram sample_rows(std::int64_t bucket, int bits);
/// Butterflies and a product with a matrix on the elements of a row.
KernelProgram sample_row_transforms();
/// Float scan by tiles: local arrays, tile ends, finish_scan, the join on the left.
KernelProgram sample_scan();
/// Histogram, ordered adds, argsort of rows, all random draws, checks and bit casts.
KernelProgram sample_odds();
/// Finish kernels over n stored values: a sum, an arg-max, a float-order scan in place.
KernelProgram sample_partials();
/// Partials of a sweep, one per element, that only their reductions read.
KernelProgram sample_folds();
/// One tile kernel that loads a buffer of `dtype` in `storage_bits` and stores it to another of the
/// same kind.
KernelProgram sample_copy(DType dtype, std::uint8_t storage_bits);
/// Two copies, of all and of half, that differ only in buffers and sizes.
KernelProgram sample_twins();
/// All of the above.
std::vector<KernelProgram> all_samples();

}  // namespace cinch::kir
