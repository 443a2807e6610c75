// Devices of the fake: host memory behind addresses that nobody else can use, streams that are
// threads, and events.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "runtime/gpu/driver.h"

struct cinch::rt::GpuStreamObject {
  int device = 0;
  std::mutex mutex;
  std::condition_variable moved;
  std::deque<std::function<void()>> work;
  std::uint64_t num_put = 0, num_done = 0;
  bool is_closed = false;
};

namespace cinch::nccl_double {

using Stream = std::shared_ptr<rt::GpuStreamObject>;

/// Returns the number of the work on its stream: it is done when that many are.
std::uint64_t enqueue(const Stream& stream, std::function<void()> work);
void wait_until(const Stream& stream, std::uint64_t num_done);
/// Waits for all work that is on its streams now.
void wait_for_device(int device);

/// Null if there is none.
Stream find_stream(rt::GpuStream stream);
/// The device of the current context; -1 if there is none.
int current_device();
/// The real address of the bytes; null if they are not in one allocation of the device.
std::uint8_t* memory_at(const void* address, std::size_t size_bytes, int device);

/// Adds memory that another allocator made, on the current device.
void adopt(rt::GpuAddress memory, std::size_t size_bytes);
void forget(rt::GpuAddress memory);

}  // namespace cinch::nccl_double
