// A device whose memory sessions have lent. MPI gets only memory of the transport there, as on the
// host: operations that MPI has not finished when a rank gives up may go on using it, and the
// session's memory stays the session's own. A copy within the device is cheap compared with a
// network. MPI follows no streams: it reads what was copied before, and what it has written is
// copied out after the work that the exchange follows.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/gpu/device.h"

namespace cinch::rt {

/// Memory of one exchange; reused for the next one.
struct MpiStaging {
  GpuMemory memory;
  GpuEvent comes_after = nullptr, is_copied = nullptr;
  bool is_used = false;

  std::span<std::uint8_t> bytes() const {
    return {reinterpret_cast<std::uint8_t*>(  // NOLINT(performance-no-int-to-ptr)
                memory.address()),
            memory.size_bytes()};
  }
};

class MpiDevice {
 public:
  /// Errors: Device.
  static Result<std::unique_ptr<MpiDevice>> open(const LentMemory& first);
  /// Destroy it in the device's turn. Staging that is still in use is kept to the end of the
  /// process.
  ~MpiDevice();
  MpiDevice(const MpiDevice&) = delete;
  MpiDevice& operator=(const MpiDevice&) = delete;

  /// Holds the device's turn, and makes its context current on this thread, while this lives.
  class Turn {
   public:
    explicit Turn(const MpiDevice& of)
        : lock_(of.turns_ == nullptr ? std::unique_lock<std::mutex>()
                                     : std::unique_lock(*of.turns_)),
          scope_(*of.device_) {}

   private:
    std::unique_lock<std::mutex> lock_;
    GpuDevice::Scope scope_;
  };

  const GpuDevice& device() const { return *device_; }
  void add(std::span<std::uint8_t> lent) { lent_.push_back(lent); }
  /// Returns false if nothing that begins there was lent.
  bool remove(std::span<std::uint8_t> lent);
  bool is_idle() const { return lent_.empty(); }
  /// Does lent memory contain all of these bytes?
  bool has(std::span<const std::uint8_t> bytes) const;

  // ---- call these in the device's turn ----

  /// Takes staging of this size. Errors: OutOfMemory, Device.
  Result<MpiStaging*> take(std::uint64_t size_bytes);
  /// Later copies come after the present work on `after`; null: after nothing.
  Status begin_input(MpiStaging& staging, GpuStream after) const;
  Status copy_in(std::span<std::uint8_t> to, std::span<const std::uint8_t> from) const;
  Status end_input(MpiStaging& staging) const;
  Status begin_output(MpiStaging& staging, GpuStream after) const;
  Status copy_out(std::span<std::uint8_t> to, std::span<const std::uint8_t> from) const;
  Status end_output(MpiStaging& staging) const;
  /// Are the copies that were begun done?
  Result<bool> is_copied(const MpiStaging& staging) const;
  /// Waits for the work on a stream.
  Status wait_for(GpuStream stream) const;
  /// Waits for all copies.
  Status wait() const;

 private:
  MpiDevice(std::shared_ptr<const GpuDevice> device, std::mutex* turns)
      : device_(std::move(device)), turns_(turns) {}
  const GpuDriver& driver() const { return device_->driver(); }
  Status start();
  Result<MpiStaging*> make();
  Status grow(MpiStaging& staging, std::uint64_t size_bytes) const;
  Status copy(std::span<std::uint8_t> to, std::span<const std::uint8_t> from,
              GpuStream stream) const;

  std::shared_ptr<const GpuDevice> device_;
  std::mutex* turns_;
  // Streams of copies that MPI reads, which may wait for work of the rank, and of copies of what
  // MPI wrote.
  GpuStream inputs_ = nullptr, outputs_ = nullptr;
  std::vector<std::span<std::uint8_t>> lent_;
  std::deque<MpiStaging> stagings_;
};

}  // namespace cinch::rt
