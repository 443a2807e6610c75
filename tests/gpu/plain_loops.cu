// A plain loop over memory: reads one array and writes another, as many bytes of each as asked for,
// spread evenly over tiles. What a GPU's memory gives at best; the floors of gpu_bench are measured
// with it. Without includes, as NVRTC and the emulated GPU take it.
using u32 = unsigned int;
using u64 = unsigned long long;

struct alignas(16) Words {
  u32 a, b, c, d;
};

// As PlainSweep of plain_loops.cpp. Counts are of 16 bytes. A tile is 256 threads times kVectors.
// The shares are how many tiles are read and written per step of the loop, at most 1, times 2^32.
struct Sweep {
  const Words* from;
  Words* to;
  u64 num_read, num_written, steps, read_share, write_share;
  u32 needle;
};

constexpr u32 kThreads = 256;

// Whole tiles without looking at each place: all loads are under way together.
template <int kVectors>
__device__ void read_tile(const Sweep& s, u64 tile, Words (&held)[kVectors]) {
  const u64 base = tile * (kThreads * kVectors) + threadIdx.x;
  if ((tile + 1) * (kThreads * kVectors) <= s.num_read) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) held[i] = s.from[base + i * kThreads];
    return;
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (base + i * kThreads < s.num_read) held[i] = s.from[base + i * kThreads];
  }
}

template <int kVectors>
__device__ void write_tile(const Sweep& s, u64 tile, const Words (&held)[kVectors]) {
  const u64 base = tile * (kThreads * kVectors) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (base + i * kThreads < s.num_written) s.to[base + i * kThreads] = held[i];
  }
}

template <int kVectors>
__device__ void sweep(const Sweep& s) {
  for (u64 step = blockIdx.x; step < s.steps; step += gridDim.x) {
    Words held[kVectors];
#pragma unroll
    for (int i = 0; i < kVectors; ++i) held[i] = Words{1, 2, 3, 5};
    const u64 read = (step * s.read_share) >> 32;
    if (read != ((step + 1) * s.read_share) >> 32) read_tile(s, read, held);
    const u64 written = (step * s.write_share) >> 32;
    if (written != ((step + 1) * s.write_share) >> 32) {
      write_tile(s, written, held);
      continue;
    }
    // All that was read is compared, so no load can be left out.
    u32 all = 0;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) all ^= held[i].a ^ held[i].b ^ held[i].c ^ held[i].d;
    if (all == s.needle) s.to[0].a = all;
  }
}

extern "C" __global__ void __launch_bounds__(256) plain_sweep_4(Sweep s) {
  sweep<4>(s);
}
extern "C" __global__ void __launch_bounds__(256) plain_sweep_1(Sweep s) {
  sweep<1>(s);
}
