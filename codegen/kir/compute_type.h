// Compute types of values, and the tables of a program that its kernels share.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/kir/kir.h"

namespace cinch::kir {

/// The number of elements of a Tile group, and of a local array.
inline constexpr std::uint32_t kTileElems = 1024;
// Of a row of a tile: reductions have so many columns.
inline constexpr std::uint32_t kRowElems = 128;

/// The type in which elements of `dtype` are computed with: integers under 32 bits as I32, narrow
/// floats as F32.
ComputeType compute_type(DType dtype);
/// The dtype whose values are exactly those of `type` (Bool: bool).
DType dtype_of(ComputeType type);
const char* compute_type_name(ComputeType type);
std::optional<ComputeType> parse_compute_type(std::string_view name);
inline bool is_float(ComputeType t) {
  return t == ComputeType::F32 || t == ComputeType::F64;
}
inline bool is_integer(ComputeType t) {
  return t != ComputeType::Bool && !is_float(t);
}
/// Bytes of a value in registers, local arrays and partial results: 1 (Bool), 4 or 8.
int compute_type_bytes(ComputeType t);

/// Bits (as in `constant`) of the value that takes no part in a reduction by `op`: add -0.0, mul 1,
/// min +inf or the largest, max -inf or the smallest, bit_and all ones, bit_or and bit_xor 0.
std::uint64_t identity_bits(ScalarOp op, ComputeType type);

/// Bits that a buffer of `dtype` uses per element where nothing is packed: 8, 16, 32, 64.
std::uint8_t whole_element_bits(DType dtype);

// ---- tables of a program ----
/// Appends a buffer; size_bytes is made from num_elems and storage_bits if it is not given.
BufferIndex add_buffer(KernelProgram& program, rt::BufferInfo buffer);
/// A workspace of whole elements.
BufferIndex add_workspace(KernelProgram& program, std::string name, DType dtype,
                          HostExprId num_elems);
/// The state of a look_back over num_groups groups: u64, two words per group and two more (CUDA's
/// ticket). A Zero step must come before the launch.
BufferIndex add_look_back_state(KernelProgram& program, std::string name, HostExprId num_groups);
std::uint32_t intern_size(KernelProgram& program, HostExprId expr);
/// Where intern_size put the expression. Extents, group lengths and numbers of groups that are no
/// constants are always there.
std::optional<std::uint32_t> find_size(const KernelProgram& program, HostExprId expr);
std::uint32_t intern_message(KernelProgram& program, std::string text);

}  // namespace cinch::kir
