// A device whose memory sessions have lent. MPI is given memory of the transport there, as it is of
// the host's: what it has not finished when a rank gives up lives on, and the session's memory is
// its own. A copy within the device is cheap beside a network. MPI follows no streams: it reads
// what has been copied by then, and what it has written is copied out behind what the exchange
// comes after.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/gpu/device.h"

namespace cinch::rt {

/// What one exchange uses; kept for the next one.
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
  /// In the device's turn. Staging that is used then is kept to the end of the process.
  ~MpiDevice();
  MpiDevice(const MpiDevice&) = delete;
  MpiDevice& operator=(const MpiDevice&) = delete;

  /// The device is the caller's while this lives: its turn, and its context on this thread.
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
  /// False: nothing that begins there was lent.
  bool remove(std::span<std::uint8_t> lent);
  bool is_idle() const { return lent_.empty(); }
  /// Does memory that was lent have all of these bytes?
  bool has(std::span<const std::uint8_t> bytes) const;

  // ---- in the device's turn ----

  /// With so many bytes. Errors: OutOfMemory, Device.
  Result<MpiStaging*> take(std::uint64_t size_bytes);
  /// Copies that follow come after what is on `after` now; null: after nothing.
  Status begin_input(MpiStaging& staging, GpuStream after) const;
  Status copy_in(std::span<std::uint8_t> to, std::span<const std::uint8_t> from) const;
  Status end_input(MpiStaging& staging) const;
  Status begin_output(MpiStaging& staging, GpuStream after) const;
  Status copy_out(std::span<std::uint8_t> to, std::span<const std::uint8_t> from) const;
  Status end_output(MpiStaging& staging) const;
  /// What was begun has been copied.
  Result<bool> is_copied(const MpiStaging& staging) const;
  /// Waits for what is on a stream.
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
  // Of what MPI reads, which may wait for work of the rank; and of what it has written.
  GpuStream inputs_ = nullptr, outputs_ = nullptr;
  std::vector<std::span<std::uint8_t>> lent_;
  std::deque<MpiStaging> stagings_;
};

}  // namespace cinch::rt
