// NumPy .npy files with gradients: f32, f16 and bf16, C order, any shape. Strict: a file that is
// not fully understood is rejected, with a message about what was found. bf16 has no name in NumPy:
// '|V2' and '<u2' are read as bf16, and '|V2' is written (as ml_dtypes' bfloat16 does).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"

namespace cinch::rt {

/// A tensor with its bytes, row-major, little endian.
struct NpyArray {
  DType dtype = kF32;  // kF32, kF16 or kBF16
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;

  std::int64_t num_elems() const;
};

/// The header alone: where the data lie, and their type and shape.
struct NpyHeader {
  DType dtype = kF32;
  std::vector<std::int64_t> shape;
  std::int64_t data_offset_bytes = 0;
};

/// Parses the first bytes of a file, which must contain the whole header. Errors: CorruptFile (not
/// an .npy, a broken header), InvalidArgument (another type, Fortran order, big endian).
Result<NpyHeader> parse_npy_header(std::span<const std::uint8_t> bytes);

/// Parses a whole file in memory. Errors as above; also data that are truncated or too long.
Result<NpyArray> parse_npy(std::span<const std::uint8_t> bytes);
/// Reads no more of a file than its header announces. Errors also: Io.
Result<std::vector<std::uint8_t>> read_npy_bytes(const std::string& path);
Result<NpyArray> read_npy(const std::string& path);

/// Version 1.0, the data at a multiple of 64 bytes, as NumPy writes. Errors: InvalidArgument (type,
/// or bytes that do not fit the shape), Io.
Result<std::vector<std::uint8_t>> format_npy(const NpyArray& array);
Status write_npy(const std::string& path, const NpyArray& array);

}  // namespace cinch::rt
