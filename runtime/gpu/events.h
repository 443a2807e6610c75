// Puts work on the same memory in one order, whatever streams the caller uses.
#pragma once

#include "runtime/gpu/device.h"

namespace cinch::rt {

/// Orders calls across streams: a stream waits for an event that was recorded after the last call
/// on another stream. Replays of graphs are not seen here: the caller keeps their order.
class GpuStreamOrder {
 public:
  explicit GpuStreamOrder(std::shared_ptr<const GpuDevice> device) : device_(std::move(device)) {}
  ~GpuStreamOrder();
  GpuStreamOrder(const GpuStreamOrder&) = delete;
  GpuStreamOrder& operator=(const GpuStreamOrder&) = delete;

  /// Call this first. Errors: OutOfMemory, Device.
  Status open();
  /// Makes later work of the stream come after all noted work. Not allowed in a capture. Errors:
  /// InvalidArgument (no such stream), Device.
  Status enter(GpuStream stream);
  /// Notes the work that the stream has now.
  void leave(GpuStream stream);
  /// Some of the work is in a graph.
  void note_graph() { is_in_graphs_ = true; }
  /// Enters, does the work, and leaves, even if the work fails.
  template <typename Work>
  auto run(GpuStream stream, Work work) -> decltype(work()) {
    CINCH_TRY(enter(stream));
    const Leaving leaving{*this, stream};
    return work();
  }
  /// An event after all work; null if some of the work is unknown.
  GpuEvent end() const { return is_noted_ && !is_in_graphs_ ? event_ : nullptr; }

 private:
  struct Leaving {
    GpuStreamOrder& order;
    GpuStream stream;
    ~Leaving() { order.leave(stream); }
  };

  std::shared_ptr<const GpuDevice> device_;
  GpuEvent event_ = nullptr;
  GpuStream last_ = nullptr;  // the stream of the last noted work
  bool has_work_ = false, is_noted_ = false, is_in_graphs_ = false;
};

// Measures how long the device takes for a stream's work between two events.

class GpuTimer {
 public:
  /// Errors: Device, OutOfMemory.
  static Result<GpuTimer> create(std::shared_ptr<const GpuDevice> device);
  GpuTimer(GpuTimer&& other) noexcept;
  GpuTimer& operator=(GpuTimer&& other) noexcept;
  ~GpuTimer();

  /// start and stop only enqueue; the stream must not be capturing. Errors: InvalidArgument (no
  /// such stream), Device.
  Status start(GpuStream stream);
  Status stop(GpuStream stream);

  /// Waits until the device has reached the stop. Errors: InvalidArgument (not started or not
  /// stopped), Device (also errors of the stream's work in between).
  Result<double> milliseconds() const;

 private:
  explicit GpuTimer(std::shared_ptr<const GpuDevice> device) : device_(std::move(device)) {}
  std::shared_ptr<const GpuDevice> device_;
  GpuEvent start_ = nullptr, stop_ = nullptr;
};

}  // namespace cinch::rt
