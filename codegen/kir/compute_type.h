// Compute types of values, and the tables that the kernels of a program share.
#pragma once

#include <string_view>

#include "codegen/kir/kir.h"

namespace cinch::kir {
/// The number of elements of a Tile group, and of a local array.
inline constexpr std::uint32_t kTileElems = 1024;
// Columns of a reduction: the elements in a row of a tile.
inline constexpr std::uint32_t kRowElems = 128;

/// The type that computes elements of `dtype`: I32 for integers under 32 bits, F32 for narrow
/// floats.
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

/// Bits (as in `constant`) of the identity of `op`: add -0.0, mul 1, min +inf or the largest
/// integer, max -inf or the smallest integer, bit_and all ones, bit_or and bit_xor 0.
std::uint64_t identity_bits(ScalarOp op, ComputeType type);

/// Bits of an element of `dtype` in a buffer that is not packed: 8, 16, 32 or 64.
std::uint8_t whole_element_bits(DType dtype);

// ---- tables of a program ----
/// Appends a buffer. Computes size_bytes from num_elems and storage_bits if it is not given.
BufferIndex add_buffer(KernelProgram& program, rt::BufferInfo buffer);
/// Appends a workspace of unpacked elements.
BufferIndex add_workspace(KernelProgram& program, std::string name, DType dtype,
                          HostExprId num_elems);
/// Appends the state of a look_back over num_groups groups: two u64 words for each group, and two
/// more for CUDA's tickets. A Zero step must clear it before the launch.
BufferIndex add_look_back_state(KernelProgram& program, std::string name, HostExprId num_groups);
std::uint32_t intern_size(KernelProgram& program, HostExprId expr);
/// The index that intern_size gave to the expression. Extents, group lengths and numbers of groups
/// always have one unless they are constants.
std::optional<std::uint32_t> find_size(const KernelProgram& program, HostExprId expr);
std::uint32_t intern_message(KernelProgram& program, std::string text);

// Facts about the kernel IR's instructions, from instrs.def: name, levels, family, meaning. Also
// the places of their optional operands.

/// Instructions of a family are alike for passes and emitters.
enum class InstrFamily : std::uint8_t {
  Given,        // known before the elements: parameters, sizes, the group
  Leaf,         // constants, an element's place
  ElementWise,  // of operands at the same element
  Call,         // of a C++ function, likewise
  Load,
  Store,
  Update,  // of what a buffer holds
  Reduction,
  LookBack,
  Local,       // an element of a local array
  LocalWhole,  // a whole local array, in place
  Finish,      // stored partials
  Sort,
  Draw,
  Status,
};

struct InstrInfo {
  std::string_view name;
  std::string_view levels;  // a mix of K, G and E
  InstrFamily family;
  std::string_view meaning;
  bool allowed_at(SectionKind level) const;
};

inline constexpr std::size_t kNumInstrKinds = 0
#define INSTR(name, levels, family, meaning) +1
#include "codegen/kir/instrs.def"
    ;

/// Total over the enum.
const InstrInfo& instr_info(InstrKind kind);
std::optional<InstrKind> find_instr(std::string_view name);
inline InstrFamily family_of(InstrKind kind) {
  return instr_info(kind).family;
}
inline bool is_load(InstrKind kind) {
  return family_of(kind) == InstrFamily::Load;
}
inline bool is_element_wise(InstrKind kind) {
  return family_of(kind) == InstrFamily::ElementWise;
}
inline bool is_draw(InstrKind kind) {
  return family_of(kind) == InstrFamily::Draw;
}
/// Does the instruction load or store neighbouring elements?
inline bool is_linear(InstrKind kind) {
  return kind == InstrKind::load_linear || kind == InstrKind::store_linear;
}
/// Of a linear access. Invalid if it has none, and for other instructions.
ValueId base_of(const Instr& instr);
ValueId limit_of(const Instr& instr);
/// Of an access at an index. Invalid if it has none, and for other instructions.
ValueId predicate_of(const Instr& instr);
/// Does an element's value depend on its operands, its place and constants alone? It must not
/// depend on memory, draws or other elements.
bool is_computed(InstrKind kind);
/// "kernel", "group", "elements".
const char* section_name(SectionKind kind);

}  // namespace cinch::kir
