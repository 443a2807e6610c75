// cub_peers: what CUB and Thrust take for parts of what Cinch's programs do, on the same sizes.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -o cub_peers cub_peers.cu
//   cub_peers FILE [elements …]
//
// A line of JSON for each figure goes to FILE. CUB's operations are captured into CUDA graphs and
// replayed between two events, as gpu_bench does with Cinch's calls:
//   DeviceReduce      sum, smallest, largest element
//   DeviceSelect      index and value of each element of magnitude tau or more: `threshold`
//   DeviceRadixSort   magnitudes, largest first, with their indices: `topk` by a full sort
// `minmax` at 2 bits is written in Thrust sweep by sweep, as code is that generates a call for each
// operator: reductions, random numbers, codes and packed bytes each go through memory. Its results
// pass through the host, so it cannot be captured.
#include <cuda_runtime.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using u8 = std::uint8_t;
using u32 = std::uint32_t;

constexpr double kTurnMs = 2, kSeconds = 0.5;
constexpr int kMostReplays = 200, kLeastRounds = 3, kMostRounds = 101;
constexpr float kTau = 0.0329f;  // keeps a thousandth of a normal gradient of deviation 0.01

void require(cudaError_t code, const char* what) {
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  if (code != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

// ---- functions of elements ----

__host__ __device__ inline u32 mixed(u32 x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}
// In [0, 1), from a counter.
__host__ __device__ inline float uniform(u32 counter, u32 stream) {
  return static_cast<float>(mixed(counter * 0x9e3779b9u + mixed(stream)) >> 8) * 0x1p-24f;
}

// Twelve uniforms: close enough to a normal of deviation 0.01.
struct Gradient {
  __host__ __device__ float operator()(u32 i) const {
    float sum = -6;
    for (u32 stream = 1; stream <= 12; ++stream) sum += uniform(i, stream);
    return 0.01f * sum;
  }
};
struct MagnitudeBits {
  __host__ __device__ u32 operator()(float x) const {
    union {
      float value;
      u32 bits;
    } both{x};
    return both.bits & 0x7fffffffu;
  }
};
struct IsLarge {
  template <typename IndexAndValue>
  __host__ __device__ bool operator()(const IndexAndValue& element) const {
    const float value = thrust::get<1>(element);
    return value >= kTau || value <= -kTau;
  }
};
struct Smaller {
  __host__ __device__ float operator()(float a, float b) const { return b < a ? b : a; }
};
struct Larger {
  __host__ __device__ float operator()(float a, float b) const { return a < b ? b : a; }
};
struct Draw {
  u32 stream;
  __host__ __device__ float operator()(u32 i) const { return uniform(i, stream); }
};
// To one of four levels, at random between the two around it.
struct CodeOf {
  float low, inverse_gap;
  __host__ __device__ u8 operator()(float x, float draw) const {
    const float level = (x - low) * inverse_gap + draw;
    return static_cast<u8>(level < 3 ? level : 3.0f);
  }
};
struct PackFour {
  const u8* codes;
  u32 num_codes;
  __host__ __device__ u8 operator()(u32 byte) const {
    u32 packed = 0;
    for (u32 i = 0; i < 4 && 4 * byte + i < num_codes; ++i)
      packed |= codes[4 * byte + i] << (2 * i);
    return static_cast<u8>(packed);
  }
};
struct Unpack {
  const u8* packed;
  __host__ __device__ u8 operator()(u32 i) const { return (packed[i / 4] >> (2 * (i % 4))) & 3; }
};
struct ValueOf {
  float low, gap;
  __host__ __device__ float operator()(u8 code) const {
    return low + gap * static_cast<float>(code);
  }
};

// ---- timing ----

class Stopwatch {
 public:
  Stopwatch() {
    require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
    require(cudaEventCreate(&start_), "an event");
    require(cudaEventCreate(&stop_), "an event");
  }

  /// The median of turns.
  double median_ms(const std::function<void()>& call) {
    run(call, 1);
    const double once = std::max(run(call, 1), 1e-6);
    const int replays = static_cast<int>(std::clamp(kTurnMs / once, 1.0, double{kMostReplays}));
    std::vector<double> times;
    const auto begin = std::chrono::steady_clock::now();
    const auto spent = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    while (times.size() < kLeastRounds || (times.size() < kMostRounds && spent() < kSeconds)) {
      times.push_back(run(call, replays));
    }
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    return times[times.size() / 2];
  }

  /// Of replays of what the call enqueues on `stream`.
  double median_ms_of_graph(const std::function<void()>& enqueue) {
    enqueue();
    require(cudaStreamSynchronize(stream), "a first call");
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "a capture");
    enqueue();
    require(cudaStreamEndCapture(stream, &graph), "a capture");
    require(cudaGraphInstantiate(&exec, graph, 0), "a graph");
    const double ms = median_ms([&] { require(cudaGraphLaunch(exec, stream), "a replay"); });
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    return ms;
  }

  cudaStream_t stream = nullptr;

 private:
  double run(const std::function<void()>& call, int replays) {
    float ms = 0;
    require(cudaEventRecord(start_, stream), "an event");
    for (int i = 0; i < replays; ++i) call();
    require(cudaEventRecord(stop_, stream), "an event");
    require(cudaEventSynchronize(stop_), "an event");
    require(cudaEventElapsedTime(&ms, start_, stop_), "timing");
    return ms / replays;
  }
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

class Report {
 public:
  explicit Report(const char* path) : file_(std::fopen(path, "w")) {
    if (file_ == nullptr) throw std::runtime_error(std::string(path) + " cannot be written");
  }
  void machine(const char* device) {
    add("{\"what\": \"machine\", \"device\": \"%s\", \"cub\": %d, \"toolkit\": %d}\n", device,
        CUB_VERSION, CUDART_VERSION);
  }
  // `program` is the one of Cinch whose call this is the counterpart of.
  void peer(const char* peer, const char* program, const char* call, u32 elements, double ms,
            bool is_graph) {
    add("{\"what\": \"peer\", \"peer\": \"%s\", \"program\": \"%s\", \"call\": \"%s\", "
        "\"elements\": %u, \"ms\": %.6f, \"graph\": %s}\n",
        peer, program, call, elements, ms, is_graph ? "true" : "false");
  }
  void skipped(const char* peer, u32 elements) {
    add("{\"what\": \"skipped\", \"program\": \"%s\", \"elements\": %u, \"why\": \"out of device "
        "memory\"}\n",
        peer, elements);
  }

 private:
  template <typename... Args>
  void add(const char* format, Args... args) {
    std::fprintf(file_, format, args...);
    std::fflush(file_);
    std::printf(format, args...);
    std::fflush(stdout);
  }
  std::FILE* file_;
};

// ---- CUB ----

// A call of CUB asks first how much memory it needs.
template <typename Call>
double cub_ms(Stopwatch& watch, Call&& call) {
  std::size_t bytes = 0;
  require(call(nullptr, bytes), "asking CUB");
  thrust::device_vector<u8> memory(std::max<std::size_t>(bytes, 1));
  return watch.median_ms_of_graph(
      [&] { require(call(thrust::raw_pointer_cast(memory.data()), bytes), "CUB"); });
}

void measure_reduce(Report& report, Stopwatch& watch, const float* g, u32 n) {
  thrust::device_vector<float> result(1);
  float* to = thrust::raw_pointer_cast(result.data());
  const int count = static_cast<int>(n);
  report.peer("cub DeviceReduce::Sum", "-", "reduce", n,
              cub_ms(watch,
                     [&](void* at, std::size_t& bytes) {
                       return cub::DeviceReduce::Sum(at, bytes, g, to, count, watch.stream);
                     }),
              true);
  report.peer("cub DeviceReduce::Min", "-", "reduce", n,
              cub_ms(watch,
                     [&](void* at, std::size_t& bytes) {
                       return cub::DeviceReduce::Min(at, bytes, g, to, count, watch.stream);
                     }),
              true);
  report.peer("cub DeviceReduce::Max", "-", "reduce", n,
              cub_ms(watch,
                     [&](void* at, std::size_t& bytes) {
                       return cub::DeviceReduce::Max(at, bytes, g, to, count, watch.stream);
                     }),
              true);
}

void measure_select(Report& report, Stopwatch& watch, const float* g, u32 n) {
  thrust::device_vector<u32> index(n);
  thrust::device_vector<float> value(n);
  thrust::device_vector<int> selected(1);
  const auto from =
      thrust::make_zip_iterator(thrust::make_tuple(thrust::make_counting_iterator(0u), g));
  const auto to = thrust::make_zip_iterator(thrust::make_tuple(
      thrust::raw_pointer_cast(index.data()), thrust::raw_pointer_cast(value.data())));
  int* num_selected = thrust::raw_pointer_cast(selected.data());
  report.peer("cub DeviceSelect::If", "threshold", "encode", n,
              cub_ms(watch,
                     [&](void* at, std::size_t& bytes) {
                       return cub::DeviceSelect::If(at, bytes, from, to, num_selected,
                                                    static_cast<int>(n), IsLarge{}, watch.stream);
                     }),
              true);
}

void measure_sort(Report& report, Stopwatch& watch, const thrust::device_vector<float>& g, u32 n) {
  thrust::device_vector<u32> keys(n), sorted_keys(n), index(n), sorted_index(n);
  thrust::transform(g.begin(), g.end(), keys.begin(), MagnitudeBits{});
  thrust::copy_n(thrust::make_counting_iterator(0u), n, index.begin());
  report.peer("cub DeviceRadixSort::SortPairsDescending", "topk", "encode", n,
              cub_ms(watch,
                     [&](void* at, std::size_t& bytes) {
                       return cub::DeviceRadixSort::SortPairsDescending(
                           at, bytes, thrust::raw_pointer_cast(keys.data()),
                           thrust::raw_pointer_cast(sorted_keys.data()),
                           thrust::raw_pointer_cast(index.data()),
                           thrust::raw_pointer_cast(sorted_index.data()), static_cast<int>(n), 0,
                           31, watch.stream);
                     }),
              true);
}

// ---- Thrust, sweep by sweep ----

class SweepwiseMinmax {
 public:
  SweepwiseMinmax(const thrust::device_vector<float>& g, cudaStream_t stream)
      : g_(g),
        stream_(stream),
        draws_(g.size()),
        out_(g.size()),
        codes_(g.size()),
        packed_((g.size() + 3) / 4) {}

  void encode() {
    const auto on = thrust::cuda::par_nosync.on(stream_);
    low_ = thrust::reduce(on, g_.begin(), g_.end(), INFINITY, Smaller{});
    const float high = thrust::reduce(on, g_.begin(), g_.end(), -INFINITY, Larger{});
    gap_ = (high - low_) / 3;
    const auto counter = thrust::make_counting_iterator(0u);
    thrust::transform(on, counter, counter + g_.size(), draws_.begin(), Draw{13});
    thrust::transform(on, g_.begin(), g_.end(), draws_.begin(), codes_.begin(),
                      CodeOf{low_, 1 / gap_});
    const PackFour pack{thrust::raw_pointer_cast(codes_.data()), static_cast<u32>(g_.size())};
    thrust::transform(on, counter, counter + packed_.size(), packed_.begin(), pack);
  }
  void decode() {
    const auto on = thrust::cuda::par_nosync.on(stream_);
    const auto counter = thrust::make_counting_iterator(0u);
    thrust::transform(on, counter, counter + g_.size(), codes_.begin(),
                      Unpack{thrust::raw_pointer_cast(packed_.data())});
    thrust::transform(on, codes_.begin(), codes_.end(), out_.begin(), ValueOf{low_, gap_});
  }
  /// Each decoded element is one of the levels around the element.
  void check() const {
    const std::size_t count = std::min<std::size_t>(g_.size(), 1 << 16);
    std::vector<float> in(count), out(count);
    thrust::copy_n(g_.begin(), count, in.begin());
    thrust::copy_n(out_.begin(), count, out.begin());
    for (std::size_t i = 0; i < count; ++i) {
      if (!(std::abs(in[i] - out[i]) <= 1.0001f * gap_))
        throw std::runtime_error("minmax decodes wrongly");
    }
  }

 private:
  const thrust::device_vector<float>& g_;
  cudaStream_t stream_;
  thrust::device_vector<float> draws_, out_;
  thrust::device_vector<u8> codes_, packed_;
  float low_ = 0, gap_ = 0;
};

void measure_minmax(Report& report, Stopwatch& watch, const thrust::device_vector<float>& g,
                    u32 n) {
  SweepwiseMinmax minmax(g, watch.stream);
  report.peer("thrust, sweep by sweep", "minmax", "encode", n,
              watch.median_ms([&] { minmax.encode(); }), false);
  report.peer("thrust, sweep by sweep", "minmax", "decode", n,
              watch.median_ms([&] { minmax.decode(); }), false);
  require(cudaStreamSynchronize(watch.stream), "minmax");
  minmax.check();
}

// Memory that is lacking leaves one thing out.
template <typename F>
void measure_or_skip(Report& report, const char* what, u32 n, F&& measure) {
  try {
    measure();
  } catch (const std::bad_alloc&) {
    report.skipped(what, n);
  }
}

void run(const char* path, const std::vector<u32>& sizes) {
  Report report(path);
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, 0), "the device");
  report.machine(properties.name);
  Stopwatch watch;
  for (const u32 n : sizes) {
    measure_or_skip(report, "the gradient", n, [&] {
      thrust::device_vector<float> g(n);
      thrust::tabulate(g.begin(), g.end(), Gradient{});
      require(cudaDeviceSynchronize(), "the gradient");
      const float* at = thrust::raw_pointer_cast(g.data());
      measure_or_skip(report, "cub DeviceReduce", n, [&] { measure_reduce(report, watch, at, n); });
      measure_or_skip(report, "cub DeviceSelect", n, [&] { measure_select(report, watch, at, n); });
      measure_or_skip(report, "cub DeviceRadixSort", n, [&] { measure_sort(report, watch, g, n); });
      measure_or_skip(report, "thrust minmax", n, [&] { measure_minmax(report, watch, g, n); });
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "cub_peers FILE [elements ...]\n");
    return 2;
  }
  std::vector<u32> sizes;
  for (int i = 2; i < argc; ++i)
    sizes.push_back(static_cast<u32>(std::strtoul(argv[i], nullptr, 10)));
  if (sizes.empty()) sizes = {1u << 27, 1u << 24, 1u << 20, 1u << 16};
  try {
    run(argv[1], sizes);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cub_peers: %s\n", error.what());
    return 3;
  }
  return 0;
}
