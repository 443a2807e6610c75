// Bodies of plain_loops.h.
#include "tests/gpu/plain_loops.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

#include "runtime/image/gpu_abi.h"

namespace cinch::testing {
namespace {

constexpr std::int64_t kVectorBytes = 16, kThreads = 256;
constexpr unsigned char kFilling = 1, kUntouched = 0xee;

// As Sweep of plain_loops.cu.
struct PlainSweep {
  std::uint64_t from, to, num_read, num_written, steps, read_share, write_share;
  std::uint32_t needle;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::uint64_t share(std::int64_t tiles, std::int64_t steps) {
  return ((static_cast<std::uint64_t>(tiles) << 32) + static_cast<std::uint64_t>(steps) - 1) /
         static_cast<std::uint64_t>(steps);
}

// At least one.
std::size_t whole_vectors(std::int64_t bytes) {
  return static_cast<std::size_t>(ceil_div(std::max<std::int64_t>(bytes, 1), kVectorBytes) *
                                  kVectorBytes);
}

void fill(const Stream& stream, rt::GpuAddress at, unsigned char byte, std::size_t size_bytes) {
  const rt::GpuDevice& device = *stream.device();
  const rt::GpuDevice::Scope scope(device);
  ok_or_throw(device.status(device.driver().fill(at, byte, size_bytes, stream.get()), "filling"),
              "plain loops");
}

}  // namespace

PlainLoops::PlainLoops(const std::filesystem::path& binary, const Stream& stream)
    : stream_(stream) {
  std::ifstream file(binary, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) throw std::runtime_error(binary.string() + " cannot be read");
  const rt::GpuDevice& device = *stream.device();
  const rt::GpuDriver& driver = device.driver();
  const rt::GpuDevice::Scope scope(device);
  ok_or_throw(device.status(driver.module_load(&module_, bytes.data()), "loading"), "plain loops");
  const auto find = [&](const char* name) {
    rt::GpuFunction function = nullptr;
    ok_or_throw(device.status(driver.module_function(&function, module_, name), name), "a kernel");
    return function;
  };
  constexpr std::int64_t kBlocksHeld = 8;  // of kThreads, by a multiprocessor
  constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
  const rt::GpuFunction many = find("plain_sweep_4"), one = find("plain_sweep_1");
  ways_ = {{many, 4, kAll}, {many, 4, kBlocksHeld * device.multiprocessors()}, {one, 1, kAll}};
  check();
}

PlainLoops::~PlainLoops() {
  const rt::GpuDevice::Scope scope(*stream_.device());
  stream_.device()->driver().module_unload(module_);
}

void PlainLoops::enqueue(const Way& way, const Traffic& sweep, rt::GpuAddress from,
                         rt::GpuAddress to) const {
  const std::int64_t tile_bytes = kVectorBytes * kThreads * way.vectors_per_thread;
  const std::int64_t read = ceil_div(sweep.read, tile_bytes);
  const std::int64_t written = ceil_div(sweep.written, tile_bytes);
  const std::int64_t steps = std::max<std::int64_t>({read, written, 1});
  const PlainSweep args{from,
                        to,
                        static_cast<std::uint64_t>(ceil_div(sweep.read, kVectorBytes)),
                        static_cast<std::uint64_t>(ceil_div(sweep.written, kVectorBytes)),
                        static_cast<std::uint64_t>(steps),
                        share(read, steps),
                        share(written, steps),
                        0x12345678};  // a value that memory does not contain
  // The emulated driver takes the parameter of any kernel for a GpuLaunch, which is larger.
  static_assert(sizeof(PlainSweep) <= sizeof(rt::GpuLaunch));
  rt::GpuLaunch launch;
  std::memcpy(&launch, &args, sizeof args);
  void* params[] = {&launch};
  const auto blocks = static_cast<unsigned>(std::min(steps, way.most_blocks));
  const rt::GpuDevice& device = *stream_.device();
  ok_or_throw(device.status(device.driver().launch(way.function, blocks, 1, 1, kThreads, 1, 1, 0,
                                                   stream_.get(), params, nullptr),
                            "launching"),
              "plain loops");
}

void PlainLoops::check() const {
  constexpr std::size_t kBehind = 4096;
  const rt::GpuDevice::Scope scope(*stream_.device());
  for (const Traffic& traffic : {Traffic{1, 50000, 1562}, Traffic{1, 1600, 70000}}) {
    Memory memory(stream_.device());
    const std::size_t written = whole_vectors(traffic.written);
    const rt::GpuAddress from = memory.hold(nullptr, whole_vectors(traffic.read));
    const rt::GpuAddress to = memory.hold(nullptr, written + kBehind);
    fill(stream_, from, kFilling, whole_vectors(traffic.read));
    for (const Way& way : ways_) {
      fill(stream_, to, kUntouched, written + kBehind);
      enqueue(way, traffic, from, to);
      stream_.wait();
      const std::vector<std::uint8_t> found = memory.read(to, written + kBehind);
      const auto untouched = static_cast<std::size_t>(std::ranges::count(found, kUntouched));
      const bool has_rest = std::all_of(found.begin() + static_cast<std::ptrdiff_t>(written),
                                        found.end(), [](auto byte) { return byte == kUntouched; });
      if (untouched != kBehind || !has_rest) {
        throw std::runtime_error("a plain loop does not write what it should");
      }
    }
  }
}

std::vector<Graph> PlainLoops::capture(const Traffic& traffic, Memory& memory) const {
  const Traffic sweep{1, ceil_div(traffic.read, traffic.sweeps),
                      ceil_div(traffic.written, traffic.sweeps)};
  const rt::GpuAddress from = memory.hold(nullptr, whole_vectors(sweep.read));
  const rt::GpuAddress to = memory.hold(nullptr, whole_vectors(sweep.written));
  fill(stream_, from, kFilling, whole_vectors(sweep.read));
  std::vector<Graph> graphs;
  for (const Way& way : ways_) {
    graphs.emplace_back(stream_, [&] {
      for (std::int64_t i = 0; i < traffic.sweeps; ++i) enqueue(way, sweep, from, to);
    });
  }
  return graphs;
}

}  // namespace cinch::testing
