// Implements the driver's functions (runtime/gpu/driver.h) over one emulated device, on any
// machine: sessions use it like NVIDIA's driver. Enqueued work waits in its stream until somebody
// waits for the stream, so that a caller who changes memory too early is found out. Copies of up to
// 64 KiB from unpinned host memory read their bytes at once, as the real driver stages them.
// Streams can be captured into graphs; a call that is not allowed during a capture spoils it. A
// launch with findings fails when it runs; the error's text lists them.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <iterator>
#include <map>

#include "codegen/emulator/gpu.h"
#include "runtime/gpu/driver.h"

namespace cinch::emulator {
/// Makes a new device the process's emulated one and returns its functions. Everything of the
/// device before is then invalid. Not thread-safe.
const rt::GpuDriver& start_driver(const GpuOptions& options = {});
/// The device of start_driver.
Gpu& driver_gpu();
/// For tests: makes the call with this number from now on (0: the next) fail with the code, once.
void fail_call(std::uint64_t calls_from_now, rt::GpuCode code);

}  // namespace cinch::emulator

// The state behind driver.h: its opaque objects, and the work that waits in streams.

// The driver's opaque objects.
struct cinch::rt::GpuContextObject {};

struct cinch::rt::GpuStreamObject {
  std::deque<std::function<cinch::rt::GpuCode()>> waiting;
  bool is_capturing = false, is_spoiled = false;
  int capture_mode = 0;
  std::vector<std::function<cinch::rt::GpuCode()>> captured;
};

namespace cinch::emulator {
/// A place in a stream where an event was recorded.
struct Mark {
  rt::GpuStream stream = nullptr;
  bool is_reached = false;
  std::chrono::steady_clock::time_point reached_at;
};
}  // namespace cinch::emulator

struct cinch::rt::GpuEventObject {
  std::shared_ptr<cinch::emulator::Mark> last;  // null: never recorded
};

struct cinch::rt::GpuModuleObject {
  cinch::emulator::Module module;
  std::vector<std::unique_ptr<cinch::rt::GpuFunctionObject>> functions;
};

struct cinch::rt::GpuFunctionObject {
  const cinch::emulator::Module* module = nullptr;
  std::string name;
};

struct cinch::rt::GpuGraphObject {
  std::vector<std::function<cinch::rt::GpuCode()>> work;
};

struct cinch::rt::GpuGraphExecObject {
  std::vector<std::function<cinch::rt::GpuCode()>> work;
};

namespace cinch::emulator {

class Driver {
 public:
  using Work = std::function<rt::GpuCode()>;

  explicit Driver(const GpuOptions& options) : gpu(options) {}

  // Null for a destroyed stream.
  rt::GpuStreamObject* find(rt::GpuStream stream) {
    if (stream == nullptr) return &default_stream;
    const auto found = std::ranges::find(streams, stream, &StreamPointer::get);
    return found == streams.end() ? nullptr : found->get();
  }

  rt::GpuCode enqueue(rt::GpuStream stream, Work work) {
    rt::GpuStreamObject* to = find(stream);
    if (to == nullptr) return rt::kGpuInvalidHandle;
    if (to->is_spoiled) return rt::kGpuCaptureInvalidated;
    if (to->is_capturing) {
      to->captured.push_back(std::move(work));
    } else {
      to->waiting.push_back(std::move(work));
    }
    return rt::kGpuSuccess;
  }

  // Runs the waiting work: all of it, or until a mark is reached. After an error the stream's
  // remaining work does not run.
  rt::GpuCode drain(rt::GpuStream stream, const Mark* until = nullptr) {
    rt::GpuStreamObject* from = find(stream);
    if (from == nullptr) return rt::kGpuInvalidHandle;
    if (from->is_capturing) return rt::kGpuInvalidValue;
    rt::GpuCode code = rt::kGpuSuccess;
    while (!from->waiting.empty() && code == rt::kGpuSuccess) {
      if (until != nullptr && until->is_reached) return code;
      const Work work = std::move(from->waiting.front());
      from->waiting.pop_front();
      code = work();
    }
    from->waiting.clear();
    return code;
  }

  void drain_all() {
    drain(nullptr);
    for (const StreamPointer& stream : streams) {
      if (!stream->is_capturing) drain(stream.get());
    }
  }

  // Is there a capture during which the call is not allowed? It is then spoiled, as by NVIDIA's
  // driver. A wait for the whole context is allowed during none; other calls in or during a relaxed
  // one.
  bool spoils_captures(bool is_for_context) {
    bool spoils = false;
    for (const StreamPointer& stream : streams) {
      const bool is_relaxed = stream->capture_mode == rt::kGpuCaptureRelaxed ||
                              thread_capture_mode == rt::kGpuCaptureRelaxed;
      if (!stream->is_capturing || (is_relaxed && !is_for_context)) continue;
      stream->is_spoiled = spoils = true;
    }
    if (spoils) text = "not while a stream captures";
    return spoils;
  }

  // Keeps the text for error_text.
  rt::GpuCode code_of(const rt::Status& status, rt::GpuCode otherwise) {
    if (status) return rt::kGpuSuccess;
    text = status.error().message;
    return status.error().kind == rt::ErrorKind::OutOfMemory ? rt::kGpuOutOfMemory : otherwise;
  }

  bool is_pinned(const void* memory) const {
    const auto next = pinned.upper_bound(static_cast<const std::uint8_t*>(memory));
    return next != pinned.begin() && memory < std::prev(next)->second;
  }

  // Does a planted failure hit this call?
  bool fails(rt::GpuCode& code) {
    if (!has_planted || planted_in-- > 0) return false;
    has_planted = false;
    text = "planted by a test";
    code = planted_code;
    return true;
  }

  using StreamPointer = std::unique_ptr<rt::GpuStreamObject>;
  Gpu gpu;
  rt::GpuContextObject context;
  rt::GpuStreamObject default_stream;
  std::vector<StreamPointer> streams;
  std::vector<std::shared_ptr<rt::GpuEventObject>> events;
  std::map<const std::uint8_t*, const std::uint8_t*> pinned;  // host memory, by its begin: its end
  int thread_capture_mode = rt::kGpuCaptureGlobal;
  std::string text;
  bool has_planted = false;
  std::uint64_t planted_in = 0;
  rt::GpuCode planted_code = rt::kGpuSuccess;
};

}  // namespace cinch::emulator
