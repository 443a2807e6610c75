// ProgramImage: everything needed to run one compiled compressor, with no compiler linked:
// binaries, buffers with size formulas, and for each entry (encode, decode, …) a list of steps.
// Plain data; has a file form (image_file.h).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/image/kernel_abi.h"

namespace cinch::rt {

using BufferIndex = std::uint32_t;

/// seed lo, seed hi, step lo, step hi, tensor, piece, worker, 0.
using DrawWords = std::array<std::uint32_t, 8>;

enum class BufferRole : std::uint8_t {
  Gradient,  // encode's, finish's or sync's input, f32, n elements
  Output,    // decode's, finish's or sync's output, f32, n elements
  Field,     // wire field role_index
  Count,  // one u32: ProgramInfo::counts entry role_index (wire counts of decode are filled by the
          // executor)
  State,  // state role_index at entry; read only
  // The new value of state role_index; the executor swaps the two when the call succeeds
  StateNext,
  StateInPlace,  // state role_index: at entry its present value, at the end of the call its new one
  Constant,      // read-only table; bytes in ProgramImage::constants[role_index]
  Workspace,     // lives during one call
};

struct BufferInfo {
  std::string name;
  DType dtype;
  std::uint8_t storage_bits =
      0;  // bits per stored element: 8, 16, 32, 64, or fewer/odd for packed wire and state fields
  HostExprId num_elems;  // an upper bound if counts are involved
  BufferRole role = BufferRole::Workspace;
  std::uint32_t role_index = 0;
  HostExprId size_bytes;  // closed formula, rounded up to whole bytes; kernels never touch a byte
                          // beyond it
};

enum class KernelRole : std::uint8_t {
  Sweep,
  Finish
};  // Finish: constant or per-tile size; not counted as a kernel

// How a kernel is launched on a GPU; zeros for other targets.
struct CudaLaunch {
  std::uint32_t block_threads = 0;     // whole warps
  std::uint64_t groups_per_block = 0;  // enough blocks: groups / groups_per_block, rounded up, at
                                       // least 1; fewer are right too
  bool is_single_block = false;        // exactly one block
  // Least number of blocks that a multiprocessor holds at a time; code is compiled for that; at
  // least 1
  std::uint32_t resident_blocks = 0;
  // Most blocks of a launch, for each resident one; 0: as many as there are groups for
  std::uint32_t waves = 1;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory of a block
  bool is_foldable = false;        // stored partials may be folded before it (GpuFold)
  friend bool operator==(const CudaLaunch&, const CudaLaunch&) = default;
};

struct KernelInfo {
  std::string symbol;  // exported function of the binary
  KernelRole role = KernelRole::Sweep;
  HostExprId num_groups;  // groups to run (upper bound where a count decides; the kernel looks at
                          // the count itself)
  std::uint32_t group_multiple =
      1;                    // tasks start at multiples of this (8 where rows share packed bytes)
  bool is_ordered = false;  // uses look-back: tasks must be *started* in ascending order, each runs
                            // to its end on one thread
  bool is_sequential = false;            // all groups in one task, ascending
  std::vector<std::string> fused;        // what it does, for explain: IR operators in order
  HostExprId bytes_read, bytes_written;  // closed formulas, from the kernel IR
  CudaLaunch cuda;
  // Of gradient and output: those of which group g reads no other elements than those from
  // g * group_elems to (g + 1) * group_elems, or writes exactly these; and those that the kernel
  // neither reads nor writes. Tensors of f16 and bf16 are converted accordingly.
  std::uint32_t group_elems = kNoIndex;
  std::vector<BufferIndex> tiled, untouched;
};

/// Groups are tiled only where group_elems * group_multiple is at most this.
inline constexpr std::uint32_t kMostTiledElems = 1U << 14;

enum class StepKind : std::uint8_t {
  // Kernel `index`; index2, if any: this many launches from this one on, of sequential kernels, may
  // run at the same time
  Launch,
  Zero,       // fill buffer `index` with zero bytes
  Copy,       // buffer index2 to buffer index (same size)
  CheckHost,  // host expression `expr` (Bool) must hold; message `index`
  If,         // bool at element 0 of buffer `index` (u8): then `body`, else `orelse`
  While,  // at most `expr` times: run `cond`, stop unless buffer `index` (u8) element 0 is nonzero,
          // run `body`
  For,    // i from `expr` to `expr2`: write i (i64) to buffer `index`, run `body`
  // With all ranks: buffer `index` from buffer index2, as `collective` says. AllToAll: of groups of
  // `expr` ranks whose numbers are `expr2` apart, if these are valid
  Collective,
};

enum class CollectiveKind : std::uint8_t {
  None,
  AllReduce,
  AllGather,
  AllToAll,
  ReduceScatter,
  Broadcast,
  // All ranks name the same root: `scalars` are {root}.
  BroadcastFrom,
  // Each rank names the rank that gets its array: `scalars` are {to}.
  SendReceive,
  // Arrays whose lengths are counts: `scalars` are {sent, received}, in elements.
  AllGatherCounted,
  // `scalars` are {to, sent, received}.
  SendReceiveCounted,
};
// Do ranks first tell one another where arrays go and how long they are?
inline bool is_routed(CollectiveKind kind) {
  return kind >= CollectiveKind::BroadcastFrom;
}
inline bool names_receiver(CollectiveKind kind) {
  return kind == CollectiveKind::SendReceive || kind == CollectiveKind::SendReceiveCounted;
}
// Is the first of `scalars` the number of a rank?
inline bool names_rank(CollectiveKind kind) {
  return kind == CollectiveKind::BroadcastFrom || names_receiver(kind);
}
inline bool is_counted(CollectiveKind kind) {
  return kind >= CollectiveKind::AllGatherCounted;
}
// The number of buffers of one u32 that such a step names.
inline std::size_t num_scalars(CollectiveKind kind) {
  return (names_rank(kind) ? 1U : 0U) + (is_counted(kind) ? 2U : 0U);
}
// Element by element, in rank order; the mean is the sum divided by the number of ranks.
enum class RankReduction : std::uint8_t { None, Sum, Mean, Min, Max };

struct CollectiveInfo {
  CollectiveKind kind = CollectiveKind::None;
  RankReduction reduction = RankReduction::None;
  std::uint32_t root = 0;  // of Broadcast
  friend bool operator==(const CollectiveInfo&, const CollectiveInfo&) = default;
};

/// Groups of ranks that exchange among themselves: the ranks with the same rank / (size * stride)
/// and the same rank % stride. Size 0: all ranks.
struct RankGroups {
  std::uint32_t size = 0, stride = 1;
  bool are_all() const { return size == 0; }
  /// The first rank of the group that `rank` is in; `stride` further on is the next.
  std::uint32_t first(std::uint32_t rank) const {
    return are_all() ? 0 : rank / (size * stride) * (size * stride) + rank % stride;
  }
  /// The number of `rank` within its group.
  std::uint32_t number(std::uint32_t rank) const { return are_all() ? rank : rank / stride % size; }
  bool are_together(std::uint32_t a, std::uint32_t b) const { return first(a) == first(b); }
  friend bool operator==(const RankGroups&, const RankGroups&) = default;
};

struct Step {
  StepKind kind = StepKind::Launch;
  std::uint32_t index = kNoIndex, index2 = kNoIndex;
  HostExprId expr, expr2;
  std::vector<Step> cond, body, orelse;
  CollectiveInfo collective = {};         // of Collective
  std::vector<BufferIndex> scalars = {};  // for Collective: see CollectiveKind
  // For a Collective that names a rank: prefix of error messages
  std::uint32_t message = kNoIndex;
  // Does `index2` name a buffer that is read?
  bool has_source() const { return kind == StepKind::Copy || kind == StepKind::Collective; }
};

enum class EntryKind : std::uint8_t { Init, Encode, Decode, DecodeAdd, Finish, Sync };
inline constexpr std::size_t kNumEntries = 6;

struct Entry {
  bool present = false;
  std::vector<Step> steps;
  std::vector<BufferIndex> buffers;  // the ones its kernels touch
  // The first step that changes a state in place, if any does. From there on no check can fail, and
  // the call can no longer be cancelled.
  std::uint32_t commit_step = kNoIndex;
};

// The argument of every kernel besides its groups. The emitted source repeats this struct as text;
// a test compares offsets.
struct KernelArgs {
  void* const* buffers;  // by BufferIndex
  const std::uint64_t*
      sizes;  // values of ProgramImage::size_exprs: i64, or f32 / bool bits in the low bits
  const std::uint64_t* params;  // raw bits of parameters, f32 in the low 32 bits
  const std::uint32_t* draw;    // see docs/language_bits.md: seed lo, seed hi, step lo, step hi,
                                // tensor, piece, worker, 0
  std::uint32_t* status;        // kStatusWords, see kernel_abi.h
  std::uint64_t* counters;      // bits read and written, if the image counts accesses; else null
};

/// Every kernel: runs groups [group_begin, group_end) on the calling thread.
using KernelFunction = void (*)(const KernelArgs* args, std::uint64_t group_begin,
                                std::uint64_t group_end);

struct ProgramImage {
  ProgramInfo info;
  std::string target;  // "cpu:x86-64-v3", "cuda:sm_90"
  std::array<std::uint64_t, 2>
      fingerprint{};  // compressor, its constants and wire: in every payload's header
  std::vector<BufferInfo> buffers;
  std::vector<HostExprId> size_exprs;
  std::vector<KernelInfo> kernels;
  std::vector<std::string> messages;  // of checks
  std::vector<std::vector<std::uint8_t>> constants;
  std::array<Entry, kNumEntries> entries;
  // For a block of kGpuStepsSymbol; 0 in images for CPUs.
  std::uint32_t gpu_steps_threads = 0, gpu_steps_shared_bytes = 0;
  std::vector<std::uint8_t>
      binary;  // a shared object for cpu targets; for cuda a cubin, or PTX with a zero at its end
  bool counts_accesses = false;
  /// The program that carries sums, in images that are saved; else it is compiled when a plan needs
  /// it.
  std::shared_ptr<const ProgramImage> carrier = nullptr;
};

// Evaluates an image's formulas for one tensor, and limits them to what a tensor can need: a
// formula in a file may give anything.

/// No buffer of a tensor with less than 2^32 elements is larger.
inline constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 44;
/// No kernel has more groups.
inline constexpr std::int64_t kMaxGroups = std::int64_t{1} << 40;

/// Does a buffer of the role hold a state, with the state's size?
inline bool is_state(BufferRole role) {
  return role == BufferRole::State || role == BufferRole::StateNext ||
         role == BufferRole::StateInPlace;
}

/// The groups of a collective; all ranks if it is not of groups. Errors: those of the formulas;
/// CheckFailed (not every rank is in a group of that size).
Result<RankGroups> rank_groups(const ProgramImage& image, HostExprId size, HostExprId stride,
                               const HostEnv& env);

/// A buffer's bytes; 0 if the formula is negative: it may belong to a branch that is not taken.
/// Errors: those of the formula; Overflow (above kMaxBufferBytes, or more than a gradient or an
/// output of env.n elements has).
Result<std::int64_t> buffer_bytes(const ProgramImage& image, BufferIndex index, const HostEnv& env);

/// A kernel's groups; 0 if the formula is negative. Errors: those of the formula; Overflow (above
/// kMaxGroups).
Result<std::int64_t> kernel_groups(const ProgramImage& image, std::size_t kernel,
                                   const HostEnv& env);

// The fingerprint of a compiled compressor. Every payload's header carries it, so that a payload of
// another compressor, or of the same one with other constants, is rejected. The ProgramInfo must be
// complete.

/// 128 bits over the compressor's name, its constants, whether it takes a matrix, the wire (counts
/// with their bounds, fields with types, shapes, reductions and index rules), and the text of each
/// C++ function that it calls. Formulas enter as text with the parameters' names, so that the
/// numbering of the expression pool does not matter. The same on every machine and target.
std::array<std::uint64_t, 2> fingerprint(const ProgramInfo& info);

}  // namespace cinch::rt
