// Work on the same memory that comes on streams of a caller's choice, in one order.
#pragma once
#include <memory>

#include "runtime/gpu/device.h"

namespace cinch::rt {

/// Each call's work comes after that of the calls before it, whatever their streams: a stream waits
/// for an event that was recorded behind the last call on another one. Graphs are replayed without
/// a word to us: their order is the caller's.
class GpuStreamOrder {
 public:
  explicit GpuStreamOrder(std::shared_ptr<const GpuDevice> device) : device_(std::move(device)) {}
  ~GpuStreamOrder();
  GpuStreamOrder(const GpuStreamOrder&) = delete;
  GpuStreamOrder& operator=(const GpuStreamOrder&) = delete;

  /// Before all else. Errors: OutOfMemory, Device.
  Status open();
  /// What the stream gets from now on comes after all that was noted. Not in a capture. Errors:
  /// InvalidArgument (no such stream), Device.
  Status enter(GpuStream stream);
  /// What the stream has is noted.
  void leave(GpuStream stream);
  /// Some of the work is in a graph.
  void note_graph() { is_in_graphs_ = true; }
  /// Enters, does the work, and leaves whatever becomes of it.
  template <typename Work>
  auto run(GpuStream stream, Work work) -> decltype(work()) {
    CINCH_TRY(enter(stream));
    const Leaving leaving{*this, stream};
    return work();
  }
  /// Behind all work; null where some of it is not known.
  GpuEvent end() const { return is_noted_ && !is_in_graphs_ ? event_ : nullptr; }

 private:
  struct Leaving {
    GpuStreamOrder& order;
    GpuStream stream;
    ~Leaving() { order.leave(stream); }
  };

  std::shared_ptr<const GpuDevice> device_;
  GpuEvent event_ = nullptr;
  GpuStream last_ = nullptr;  // that something was noted of
  bool has_work_ = false, is_noted_ = false, is_in_graphs_ = false;
};

}  // namespace cinch::rt
