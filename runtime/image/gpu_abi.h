// What the host and the kernels of a GPU image share: the one parameter of every launch, and a
// table in device memory with one entry per tensor. The emitted text declares the same structs and
// asserts these offsets, so that a kernel never depends on how many tensors a launch is for.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

#include "runtime/image/image.h"

namespace cinch::rt {

/// A launch acts on a tensor only where the u8 of its buffer `buffer` is zero (wanted 0) or is not
/// (wanted 1): the branches of `if` and the rounds of `while`. With buffer kRoundCondition: only
/// where round `wanted` of a loop exists, that is, is below the size of slot `end` less that of
/// slot `begin`.
struct GpuCondition {
  std::uint32_t buffer = 0, wanted = 0;
  std::uint32_t end = 0, begin = kNoIndex;  // begin kNoIndex: from 0
};
inline constexpr std::uint32_t kRoundCondition = UINT32_MAX;
inline constexpr std::uint32_t kMaxGpuConditions = 8;

/// How calls went for one tensor; written by the launch that ends a call, read by the host later.
struct GpuOutcome {
  std::uint64_t payload_bytes = 0;  // of the last encode
  std::uint32_t flags = 0;          // status[kStatusFlags] of the last call
  std::uint32_t failed = 0;         // the first status[kStatusFailed] that was not 0 since the host
                                    // cleared it
};

/// What a launch does to a tensor, or one of the things that it does one after another.
struct GpuStep {
  std::int64_t value = 0;    // of a service; of a kernel a GpuFold
  std::uint32_t kernel = 0;  // an index of the image's kernels, or kGpuServiceBase + a GpuService
  std::uint32_t arg0 = kNoIndex, arg1 = kNoIndex;
  std::uint32_t is_guarded = 0;  // 1: leaves out tensors whose call has failed or is marked
  std::uint32_t num_conditions = 0;
  GpuCondition conditions[kMaxGpuConditions];
};
inline constexpr std::uint32_t kGpuServiceBase = std::uint32_t{1} << 16;

/// The value of a step that is a kernel: where CudaLaunch::is_foldable, stored partials may be
/// reduced in part by a step of many blocks before the one that finishes.
enum class GpuFold : std::uint8_t {
  None,      // all that the kernel does
  Folds,     // only puts the result of each tile of 1024 partials in the place of its first
  IsFolded,  // all that the kernel does, from these results
};

/// Shared memory of a block that a launch may ask for without more ado, on every device.
inline constexpr std::uint32_t kMaxGpuSharedBytes = 48 * 1024;

/// The kernel that takes a list of steps, with a block for each tensor or as many as each step has.
inline constexpr const char* kGpuStepsSymbol = "cinch_steps";

/// The one parameter of every kernel, by value. Addresses are of the device.
struct GpuLaunch {
  std::uint64_t tensors = 0;   // entries GpuTensorLayout::size_bytes apart
  std::uint64_t swapped = 0;   // a word for each state of each tensor: 1 where State and StateNext
                               // have changed places
  std::uint64_t status = 0;    // kStatusWords by tensor, of the call at hand
  std::uint64_t outcomes = 0;  // a GpuOutcome by tensor
  std::uint64_t first_block = 0;  // num_tensors + 1 words; 0: one tensor has all blocks
  std::uint64_t counts = 0;       // num_counts words by tensor, of the call at hand
  std::uint64_t steps = 0;        // num_steps of GpuStep, for kGpuStepsSymbol; 0: `step`
  std::uint32_t num_tensors = 1, num_states = 0, num_counts = 0, num_steps = 1;
  std::uint32_t has_block_per_tensor = 0;  // 1: block b is all that tensor b has
  std::uint32_t begins_call = 0;           // 1: kGpuStepsSymbol zeroes status and counts first
  GpuStep step;
};

/// Byte offsets in the table's entry of one tensor, whose lists have the image's lengths:
///   buffers  pointers by BufferIndex          bytes    of each buffer, in this call
///   sizes    by index of size_exprs           groups   by kernel
///   params   as in KernelArgs                 header   fingerprint (2 words), decode hash, rows,
///                                                      columns: what payloads of this call say
///   payload  pointer; bytes it has room for (encode) or holds at most (decode)
///   tensor   pointer to the caller's gradient or output where it is not f32, else null
///   draw     eight u32, as in KernelArgs
struct GpuTensorLayout {
  std::size_t buffers = 0, bytes = 0, sizes = 0, groups = 0, params = 0, header = 0, payload = 0;
  std::size_t tensor = 0, draw = 0, size_bytes = 0;
  std::size_t num_buffers = 1, num_sizes = 1, num_params = 1, num_kernels = 1;  // at least 1 each
};
GpuTensorLayout gpu_tensor_layout(std::size_t num_buffers, std::size_t num_sizes,
                                  std::size_t num_params, std::size_t num_kernels);
GpuTensorLayout gpu_tensor_layout(const ProgramImage& image);

/// What every GPU image does beside its own kernels, with any number of blocks.
enum class GpuService : std::uint8_t {
  Zero,           // buffer arg0
  Copy,           // buffer arg0 from buffer arg1
  SetRound,       // i64 of buffer arg0 = value + the size of slot arg1
  Widen,          // buffer arg0 (f32) from `tensor`, whose type is arg1: 1 f16, 2 bf16
  Narrow,         // the reverse, at the end of decode and finish; not where the call failed, but
                  // with a value other than 0 where the tensor is marked
  Check,          // message arg1 where the size of slot arg0, a bool, is false
  FindNonFinite,  // where a check has failed: marks the tensor if buffer arg0 holds a non-finite
                  // value
  Seal,           // ends encode: closes fields up, header, counts; states take their new values
  Commit,    // ends init and finish: states take their new values; arg0: buffer that is all NaN
             // where the tensor is marked, or kNoIndex
  Open,      // begins decode: checks the payload, places its fields; arg0: output buffer
  Fill,      // ends decode: NaN to buffer arg0 where the payload is marked
  AddTo,     // buffer arg0 += buffer arg1, f32
  Divide,    // buffer arg0 = buffer arg1 / the f32 whose bits are value
  Multiply,  // buffer arg0 = buffer arg1 * the f32 whose bits are value
};
inline constexpr std::size_t kNumGpuServices = 14;
/// Those that know nothing of the program have a kernel of their own too, so that moves of much
/// memory run at its speed: kGpuServeSymbol, in blocks of kGpuServiceThreads.
inline constexpr const char* kGpuServeSymbol = "cinch_serve";
inline constexpr std::uint32_t kGpuServiceThreads = 256;
bool is_plain_service(GpuService service);
const char* gpu_service_name(GpuService service);
/// The value of a step that divides or multiplies.
inline std::int64_t gpu_factor(float factor) {
  return std::bit_cast<std::uint32_t>(factor);
}

/// On a GPU status[kStatusFailed] also says what is wrong with a payload: kPayloadFaultBit, the
/// number of the field (or count) from bit 8 on, and one of these.
inline constexpr std::uint32_t kPayloadFaultBit = std::uint32_t{1} << 31;
/// Set beside the number of a message that names a condition which does not hold.
inline constexpr std::uint32_t kConditionBit = std::uint32_t{1} << 30;
/// Written by the host, at a tensor where another rank failed.
inline constexpr std::uint32_t kRankFaultBit = std::uint32_t{1} << 29;
enum class PayloadFault : std::uint32_t {
  Magic = 1,
  Version,
  Flags,
  Length,
  Fingerprint,
  Shape,
  DecodeHash,
  Count,
  CheckWord,
  Padding,
  LastBits,
  IndexLimit,
  IndexOrder,
};

}  // namespace cinch::rt
