// A sweep's streams are divided into blocks of the same share of each, as in a kernel.
#include "compiler/bench/floor_timer.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "compiler/bench/stream_loops.h"
#include "runtime/module/cpu_module.h"

namespace cinch::bench {

using analysis::Stream;

namespace {

// Block size of a sweep's longest stream: fits the nearest caches, and is far above the cost of a
// call.
constexpr std::int64_t kBlockBytes = 16 << 10;
constexpr std::uint64_t kBlocksPerTask = 32;
constexpr std::uint64_t kWordsPerTask = 1 << 18;

// Takes the results of loads, so that the compiler cannot drop them.
std::atomic<std::uint32_t> sink;

// For the widest vectors of this machine.
const StreamLoops& stream_loops() {
#ifdef __x86_64__
  if (rt::host_supports("x86-64-v4")) return kStreamLoopsV4;
  if (rt::host_supports("x86-64-v3")) return kStreamLoopsV3;
#endif
  return kStreamLoopsBase;
}

std::int64_t longest(const std::vector<Stream>& sweep) {
  std::int64_t bytes = 0;
  for (const Stream& stream : sweep) bytes = std::max(bytes, stream.size_bytes);
  return bytes;
}

}  // namespace

rt::Result<FloorTimer> FloorTimer::make(analysis::ForcedSweeps floor, rt::TaskRunner& runner) {
  FloorTimer timer(std::move(floor), runner);
  CINCH_TRY(timer.allocate());
  return timer;
}

rt::Status FloorTimer::allocate() {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& sweep : floor_.sweeps) {
    for (const Stream& stream : sweep) {
      std::int64_t& size = sizes[stream.name];
      size = std::max(size, stream.size_bytes);
    }
  }
  for (const auto& [name, size] : sizes) {
    rt::AlignedBuffer& array = arrays_[name];
    if (auto status = array.resize(size); !status) return status;
    std::fill(array.bytes().begin(), array.bytes().end(), std::uint8_t{1});
  }
  return {};
}

double FloorTimer::run() {
  const auto start = std::chrono::steady_clock::now();
  for (const auto& sweep : floor_.sweeps) run_sweep(sweep);
  if (floor_.random_words > 0) draw(static_cast<std::uint64_t>(floor_.random_words));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void FloorTimer::run_sweep(const std::vector<Stream>& sweep) {
  const auto num_blocks = static_cast<std::uint64_t>(longest(sweep) / kBlockBytes + 1);
  const std::uint64_t num_tasks = (num_blocks + kBlocksPerTask - 1) / kBlocksPerTask;
  (void)runner_->run(num_tasks, nullptr, [&](std::uint64_t task) {
    const std::uint64_t end = std::min(num_blocks, (task + 1) * kBlocksPerTask);
    for (std::uint64_t b = task * kBlocksPerTask; b < end; ++b) run_block(sweep, b, num_blocks);
  });
}

void FloorTimer::run_block(const std::vector<Stream>& sweep, std::uint64_t block,
                           std::uint64_t num_blocks) {
  const StreamLoops& loops = stream_loops();
  for (const Stream& stream : sweep) {
    const std::uint64_t words = static_cast<std::uint64_t>(stream.size_bytes) / 4;
    const std::uint64_t begin = words * block / num_blocks;
    const std::uint64_t count = words * (block + 1) / num_blocks - begin;
    auto* at = reinterpret_cast<std::uint32_t*>(arrays_.at(stream.name).data()) + begin;
    switch (stream.use) {
      case Stream::Use::Read:
        sink.store(loops.read(at, count), std::memory_order_relaxed);
        break;
      case Stream::Use::Update:
        loops.update(at, count);
        break;
      case Stream::Use::Write:
        loops.write(at, count, static_cast<std::uint32_t>(block));
        break;
    }
  }
}

void FloorTimer::draw(std::uint64_t num_words) {
  const std::uint64_t num_tasks = (num_words + kWordsPerTask - 1) / kWordsPerTask;
  (void)runner_->run(num_tasks, nullptr, [&](std::uint64_t task) {
    const std::uint64_t first = task * kWordsPerTask;
    const std::uint64_t count = std::min(kWordsPerTask, num_words - first);
    sink.store(
        stream_loops().draw(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)),
        std::memory_order_relaxed);
  });
}

}  // namespace cinch::bench
