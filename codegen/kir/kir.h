// Kernel IR: loops, tiles and flat buffers; no array operators. One form for every target.
//
// A kernel runs over *groups*. In a Tile kernel a group is 1024 consecutive elements of a vector of
// `extent` elements (the last may be shorter); in a Row kernel it is one row of `group_len`
// elements of a rows x group_len matrix, of any length. Its body is a list of sections: kernel code
// (once per task, uniform), then per group in turn: group code (uniform over the group) and element
// sections (the body runs for every element j of the group, ascending; lanes of a vector or of a
// warp side by side). Reductions follow the language's fixed order: columns of 128, 8 rows to a
// tile of 1024, halving tree, tiles by the same rule. Groups past the actual extent (extent_value)
// do not run and write nothing. A value computed in one element section and needed in a later one
// is computed again, or passed through a local array.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/image/image.h"

namespace cinch::kir {
using ValueId = Id<struct KirValueTag>;
using rt::BufferIndex;

// Types of computed values. Narrower types exist in buffers only; loads and stores convert.
enum class ComputeType : std::uint8_t { Bool, I32, U32, I64, U64, F32, F64 };

enum class InstrKind : std::uint8_t {
#define INSTR(name, levels, family, meaning) name,
#include "codegen/kir/instrs.def"
};

struct DrawSite {
  std::uint32_t site = 0;
  bool shared = false;
};

// Joins two N-tuples: a commutative builtin, or instructions over the arguments a0..aN-1, b0..bN-1
// (element-level scalars; the body may use kernel-level values).
struct Instr;
struct Combiner {
  std::optional<ScalarOp> op;  // add, mul, min, max, bit_and, bit_or, bit_xor
  std::vector<ValueId> args;   // 2N
  std::vector<Instr> body;
  std::vector<ValueId> results;  // N
};

struct Instr {
  InstrKind kind;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  ScalarOp scalar_op = ScalarOp::add;
  std::uint64_t bits = 0;
  std::uint32_t index = 0;
  std::uint32_t combiner = rt::kNoIndex;  // entry of Kernel::combiners
  std::vector<BufferIndex> buffers;       // buffer(s) in the order of the row in instrs.def
  DType dtype, from_dtype;
  DrawSite draw;
  bool exclusive = false, descending = false;
  bool is_alike = false;    // has one value for the 128 elements of a row
  bool is_compact = false;  // store_at: stores counted elements side by side
};

/// Invalid if the instruction has no operand at `index`.
inline ValueId optional_operand(const Instr& instr, std::size_t index) {
  return index < instr.operands.size() ? instr.operands[index] : ValueId();
}

/// Does a stochastic_round return an integer?
inline bool rounds_to_int(const Instr& instr) {
  return instr.kind == InstrKind::stochastic_round && is_int(instr.dtype);
}

struct Value {
  ComputeType type;
  std::string name;  // hint for the emitted source; may be empty
};

enum class SectionKind : std::uint8_t { Kernel, Group, Elements };
struct Section {
  SectionKind kind;
  std::vector<Instr> instrs;
};

/// Names the contents of a buffer. Every value that is stored has a number, the same number in
/// every buffer. Whoever makes a kernel declares the versions; check_versions (verifier.h) proves
/// them.
using Version = std::uint32_t;
inline constexpr Version kNothing = 0;  // unknown contents
inline constexpr Version kZeros = 1;    // the contents after a Zero step
inline constexpr Version kFirstMadeVersion = 2;
struct Touch {
  BufferIndex buffer = rt::kNoIndex;
  Version version = kNothing;
  friend auto operator<=>(const Touch&, const Touch&) = default;
};

// What a step other than a launch needs in a buffer and leaves there. `step` names the step by the
// buffer that only it uses: a condition, a counter, or what a collective receives.
//   If          the branches leave `first` and `second`; together they are `made`
//   For, While  `first` is there before the first round, `second` after each round; a round finds
//               `made`, which is also there behind the loop; a counter has `made` alone
//   Collective  reads `first` or sends it from `buffer`, and receives `made`; without `first` it
//               leaves `made` in `buffer`
struct StepTouch {
  BufferIndex step = rt::kNoIndex, buffer = rt::kNoIndex;
  Version first = kNothing, second = kNothing, made = kNothing;
};

struct LocalArray {
  ComputeType type;  // 1024 elements
};

enum class GroupKind : std::uint8_t {
  Tile,    // groups of 1024 of `extent` elements
  Row,     // groups of group_len elements; extent = groups * group_len
  Single,  // Finish: one group, no element sections needed (extent 1)
};

struct Kernel {
  rt::KernelInfo info;
  GroupKind group_kind = GroupKind::Tile;
  // The three sizes (info.num_groups is the third) are constants or entries of
  // KernelProgram::size_exprs.
  HostExprId
      extent;  // Tile: elements; Row: rows * group_len. An upper bound if extent_value is set
  HostExprId group_len;  // Row: elements per group; constant where it folds to one
  // Optional, kernel level, i64: the actual elements (Tile) or rows (Row), if a count decides them.
  ValueId extent_value;
  std::vector<Value> values;
  std::vector<Combiner> combiners;
  std::vector<LocalArray> locals;
  std::vector<Section> sections;  // the first is the Kernel section
  bool is_foldable = false;  // a finishing kernel whose partials may be folded before (GpuFold)
  // The versions that the kernel needs (also in buffers that it changes in part), and those it
  // leaves.
  std::vector<Touch> reads, writes;
};

struct KernelProgram {
  rt::ProgramInfo info;
  std::vector<rt::BufferInfo> buffers;
  std::vector<HostExprId> size_exprs;
  std::vector<std::string> messages;
  std::vector<std::vector<std::uint8_t>> constants;
  std::vector<Kernel> kernels;
  std::array<rt::Entry, rt::kNumEntries> entries;
  std::vector<StepTouch> step_touches;
  // The versions that must be in given buffers at the end of an entry.
  std::array<std::vector<Touch>, rt::kNumEntries> results;
};

// Structure of a kernel program: how many kernels an entry launches, and which have an order.

struct EntryStructure {
  int sweeps = 0;                      // launches of Sweep kernels, each place in the steps once
  int finishes = 0;                    // launches of Finish kernels
  int zeros = 0;                       // zero fills
  int copies = 0;                      // buffer copies
  int loops = 0;                       // While and For steps
  int branches = 0;                    // If steps
  int collectives = 0;                 // exchanges with the other ranks
  std::vector<std::uint32_t> kernels;  // launched kernels in order of their first launch
};

/// An absent entry gives zeros.
EntryStructure entry_structure(const KernelProgram& program, rt::EntryKind entry);
/// "encode: 1 sweep, 1 finish, 1 zero": for tests and explain. Empty for an absent entry.
std::string describe_structure(const KernelProgram& program, rt::EntryKind entry);
/// Visits the step and all steps inside it.
void for_each_step(const rt::Step& step, const std::function<void(const rt::Step&)>& visit);
/// Does the step, or a step inside it, read or write the buffer?
bool touches(const KernelProgram& program, const rt::Step& step, rt::BufferIndex buffer);
/// Does the kernel load, compute and store scalars only? One thread does all of it.
bool is_of_scalars(const Kernel& kernel);
/// Do additions into the buffer give the same bits in any order, and does every target have an
/// atomic addition for them? True for integers that fill 32 or 64 bits.
bool adds_in_any_order(DType dtype);
bool adds_in_any_order(const rt::BufferInfo& buffer);

/// "init", "encode", "decode", "decode_add", "finish", "sync".
const char* entry_name(rt::EntryKind entry);

}  // namespace cinch::kir
