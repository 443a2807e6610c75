// What the host and kernels share, as one text: image.h includes this file, and the CUDA emitter
// puts it in front of every program (codegen/emit/cuda.cpp). So it includes nothing, needs no
// library, and is C++17. Kernels find u8, u32, u64 and i64 in namespace cinch (scalar_ops.h of the
// prelude). The rest of what the host knows of kernels on a GPU is in gpu_abi.h.

namespace cinch::rt {

// An address of the device: kernels see a pointer, the host a number.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
template <class T>
using GpuPointer = T*;
#else
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;
template <class T>
using GpuPointer = u64;
#endif

inline constexpr u32 kNoIndex = ~u32{0};

// status[0]: bit 0 = a non-finite gradient value was seen. status[1]: 0, or 1 + the lowest message
// index of a failed check.
enum : u32 { kStatusFlags = 0, kStatusFailed = 1, kStatusWords = 4 };
inline constexpr u32 kFlagNonFinite = 1;

// ---- of kernels on a GPU ----

/// On a GPU status[kStatusFailed] also says what is wrong with a payload: kPayloadFaultBit, the
/// number of the field (or count) from bit 8 on, and a PayloadFault.
inline constexpr u32 kPayloadFaultBit = u32{1} << 31;
/// Set beside the number of a message that names a condition which does not hold.
inline constexpr u32 kConditionBit = u32{1} << 30;
/// Written by the host, at a tensor where another rank failed.
inline constexpr u32 kRankFaultBit = u32{1} << 29;
enum PayloadFault : u32 {
  kFaultMagic = 1,
  kFaultVersion,
  kFaultFlags,
  kFaultLength,
  kFaultFingerprint,
  kFaultShape,
  kFaultDecodeHash,
  kFaultCount,
  kFaultCheckWord,
  kFaultPadding,
  kFaultLastBits,
  kFaultIndexLimit,
  kFaultIndexOrder,
};

/// A launch acts on a tensor only where the u8 of its buffer `buffer` is zero (wanted 0) or is not
/// (wanted 1): the branches of `if` and the rounds of `while`. With buffer kRoundCondition: only
/// where round `wanted` of a loop exists, that is, is below the size of slot `end` less that of
/// slot `begin`.
struct GpuCondition {
  u32 buffer = 0, wanted = 0;
  u32 end = 0, begin = kNoIndex;  // begin kNoIndex: from 0
};
inline constexpr u32 kRoundCondition = ~u32{0};
inline constexpr u32 kMaxGpuConditions = 8;

/// How calls went for one tensor; written by the launch that ends a call, read by the host later.
struct GpuOutcome {
  u64 payload_bytes = 0;  // of the last encode
  u32 flags = 0;          // status[kStatusFlags] of the last call
  u32 failed = 0;  // the first status[kStatusFailed] that was not 0 since the host cleared it
};

/// What a launch does to a tensor, or one of the things that it does one after another.
struct GpuStep {
  i64 value = 0;   // of a service; of a kernel a GpuFold
  u32 kernel = 0;  // an index of the image's kernels, or a GpuService
  u32 arg0 = kNoIndex, arg1 = kNoIndex;
  u32 is_guarded = 0;  // 1: leaves out tensors whose call has failed or is marked
  u32 num_conditions = 0;
  GpuCondition conditions[kMaxGpuConditions];
};

/// The value of a step that is a kernel: where CudaLaunch::is_foldable, stored partials may be
/// reduced in part by a step of many blocks before the one that finishes.
enum class GpuFold : u8 {
  None,      // all that the kernel does
  Folds,     // only puts the result of each tile of 1024 partials in the place of its first
  IsFolded,  // all that the kernel does, from these results
};

/// What every GPU image does beside its own kernels, with any number of blocks. No image has so
/// many kernels that their numbers meet these.
enum class GpuService : u32 {
  Zero = u32{1} << 16,  // buffer arg0
  Copy,                 // buffer arg0 from buffer arg1
  SetRound,             // i64 of buffer arg0 = value + the size of slot arg1
  Widen,                // buffer arg0 (f32) from `tensor`, whose type is arg1: 1 f16, 2 bf16
  Narrow,               // the reverse, at the end of decode and finish; not where the call failed,
                        // but with a value other than 0 where the tensor is marked
  Check,                // message arg1 where the size of slot arg0, a bool, is false
  FindNonFinite,        // where a check has failed: marks the tensor if buffer arg0 holds a
                        // non-finite value
  Seal,                 // ends encode: closes fields up, header, counts; states take their new
                        // values
  Commit,               // ends init and finish: states take their new values; arg0: buffer that is
                        // all NaN where the tensor is marked, or kNoIndex
  Open,                 // begins decode: checks the payload, places its fields; arg0: output buffer
  Fill,                 // ends decode: NaN to buffer arg0 where the payload is marked
  AddTo,                // buffer arg0 += buffer arg1, f32
  Divide,               // buffer arg0 = buffer arg1 / the f32 whose bits are value
  Multiply,             // buffer arg0 = buffer arg1 * the f32 whose bits are value
};

/// A table's entry of one tensor, whose lists have the image's lengths, at least 1 each.
template <u32 Buffers, u32 Sizes, u32 Kernels, u32 Params>
struct GpuTensorOf {
  void* buffers[Buffers];  // by BufferIndex
  u64 bytes[Buffers];      // of each buffer, in this call
  u64 sizes[Sizes];        // by index of size_exprs
  u64 groups[Kernels];
  u64 params[Params];  // as in KernelArgs
  u64 header[5];  // fingerprint (2 words), decode hash, rows, columns: what payloads of this call
                  // say
  void* payload;
  u64 payload_bytes;  // that it has room for (encode) or holds at most (decode)
  void* tensor;       // the caller's gradient or output where it is not f32, else null
  u32 draw[8];        // as in KernelArgs
};
/// Of the program at hand. Only its kernels know it; the host has gpu_tensor_layout.
struct GpuTensor;

/// The one parameter of every kernel, by value.
struct GpuLaunch {
  GpuPointer<GpuTensor> tensors = {};
  // A word for each state of each tensor: 1 where State and StateNext have changed places.
  GpuPointer<u32> swapped = {};
  GpuPointer<u32> status = {};             // kStatusWords by tensor, of the call at hand
  GpuPointer<GpuOutcome> outcomes = {};    // by tensor
  GpuPointer<const u32> first_block = {};  // num_tensors + 1 words; none: one tensor has all blocks
  GpuPointer<u32> counts = {};             // num_counts words by tensor, of the call at hand
  GpuPointer<const GpuStep> steps = {};    // num_steps, for kGpuStepsSymbol; none: `step`
  u32 num_tensors = 1, num_states = 0, num_counts = 0, num_steps = 1;
  u32 has_block_per_tensor = 0;  // 1: block b is all that tensor b has
  u32 begins_call = 0;           // 1: kGpuStepsSymbol zeroes status and counts first
  GpuStep step;
};

// Both sides agree. NVRTC 13.0 and older have no offsetof.
static_assert(sizeof(GpuOutcome) == 16);
static_assert(sizeof(GpuStep) == 160);
static_assert(sizeof(GpuLaunch) == 240 && sizeof(GpuLaunch) - sizeof(GpuStep) == 80);

}  // namespace cinch::rt
