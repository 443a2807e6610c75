// launch.h: which tensor a block works for, and whether it takes part. Needs warp.h and the structs
// of the launch (runtime/image/kernel_abi.h). The emitter prints GpuTensor, one of these structs.

namespace cinch {

// A block's part of a launch: a tensor, and the block's place among that tensor's blocks.
struct Place {
  u32 tensor, block, num_blocks;
};

static __device__ __noinline__ Place find_place(const GpuLaunch& launch) {
  if (launch.has_block_per_tensor != 0u) return {blockIdx.x, 0u, 1u};
  if (launch.first_block == nullptr) return {0u, blockIdx.x, gridDim.x};
  u32 low = 0, high = launch.num_tensors;  // first_block[low] <= blockIdx.x < first_block[high]
  while (high - low > 1u) {
    const u32 middle = low + (high - low) / 2u;
    if (launch.first_block[middle] <= blockIdx.x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const u32 first = launch.first_block[low];
  return {low, blockIdx.x - first, launch.first_block[low + 1u] - first};
}

CINCH_FN u32* status_of(const GpuLaunch& launch, Place place) {
  return launch.status + kStatusWords * place.tensor;
}

CINCH_FN u64 num_elems(const GpuTensor& args) {
  return args.header[3] * args.header[4];
}

CINCH_FN bool holds(const GpuTensor& args, const GpuCondition& condition) {
  if (condition.buffer == kRoundCondition) {
    const i64 begin = condition.begin == ~0u ? 0 : i64(args.sizes[condition.begin]);
    return i64(condition.wanted) < i64(args.sizes[condition.end]) - begin;
  }
  const u8 flag = *static_cast<const u8*>(args.buffers[condition.buffer]);
  return (flag != 0u) == (condition.wanted != 0u);
}

// The result is the same for all threads of the block. One thread reads and tells the others,
// because all blocks read these lines, and blocks that run at the same time may set the status. The
// step itself may change what was read. A function of its own, like find_place, because every
// kernel begins with both.
static __device__ __noinline__ bool takes_part(const GpuStep& step, const GpuTensor& args,
                                               const u32* status) {
  if (step.is_guarded == 0u && step.num_conditions == 0u) return true;
  bool stays_out = false;
  if (threadIdx.x == 0u) {
    const volatile u32* seen = status;
    stays_out = step.is_guarded != 0u && (seen[0] | seen[1]) != 0u;
    // For no elements, and after a failure, no kernel ran that could have written a condition.
    stays_out = stays_out || (step.num_conditions != 0u && num_elems(args) == 0u);
    for (u32 i = 0; i < step.num_conditions; ++i) {
      stays_out = stays_out || !holds(args, step.conditions[i]);
    }
  }
  return __syncthreads_or(int(stays_out)) == 0;
}

// The threads that share the elements of a tensor: all threads of its blocks.
struct Threads {
  u64 rank, count;
};
CINCH_FN Threads threads_of(Place place) {
  return {u64(place.block) * blockDim.x + threadIdx.x, u64(place.num_blocks) * blockDim.x};
}

// The words of a call. A block that runs the whole call clears them.
CINCH_FN void begin_call(const GpuLaunch& launch, u32* status, Place place) {
  u32* const counts = launch.counts + u64(launch.num_counts) * place.tensor;
  for (u32 i = threadIdx.x; i < kStatusWords; i += blockDim.x) status[i] = 0u;
  for (u32 i = threadIdx.x; i < launch.num_counts; i += blockDim.x) counts[i] = 0u;
  __syncthreads();
}

// Addresses come from tables, so the compiler must be told that they are of global memory.
CINCH_FN u8* in_global(u8* address) {
  __builtin_assume(__isGlobal(address));
  return address;
}

// Have the two buffers of a state changed places?
CINCH_FN u32& state_swapped(const GpuLaunch& launch, u32 tensor, u32 state) {
  return launch.swapped[tensor * launch.num_states + state];
}

}  // namespace cinch
