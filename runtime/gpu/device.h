// One GPU of a driver: its context, its memory, and calls that return errors as values.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/memory_source.h"
#include "runtime/gpu/driver.h"

namespace cinch::rt {
// Work that has nothing to do with what other threads capture.

/// While this lives, the thread may wait for events, free memory and load modules during other
/// threads' captures, to which none of this belongs. In a thread's default mode that would spoil
/// the captures.
class BesideCaptures {
 public:
  explicit BesideCaptures(const GpuDriver& driver) : driver_(driver) { exchange(); }
  ~BesideCaptures() { exchange(); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  void exchange() {
    if (driver_.exchange_capture_mode != nullptr) (void)driver_.exchange_capture_mode(&mode_);
  }
  const GpuDriver& driver_;
  int mode_ = kGpuCaptureRelaxed;
};

// Frees memory and modules, to the driver or to their source, never while running work may use
// them.

/// Memory that a source provided.
struct SourcedMemory {
  MemorySource source;
  void* memory = nullptr;
  std::size_t size_bytes = 0;
  MemoryUse use = MemoryUse::Workspace;
};

/// Frees for one context, which is current in all calls. The driver refuses to wait while some
/// stream captures; objects are then kept until a later wait succeeds.
class GpuFreeing {
 public:
  explicit GpuFreeing(const GpuDriver& driver) : driver_(driver) {}
  GpuFreeing(const GpuFreeing&) = delete;
  GpuFreeing& operator=(const GpuFreeing&) = delete;

  /// Call this before the device allocates pooled memory. Errors: Device.
  Status prepare();
  /// `end`: an event after all work that used the memory; null: unknown, then this waits for the
  /// whole context.
  void free(GpuAddress address, bool is_pooled, GpuEvent end);
  /// Returns memory to its source, on the thread of this call or of a later one.
  void give_back(SourcedMemory lent, GpuEvent end);
  /// Unloads a module after its sessions: kept work may still run its kernels.
  void unload(GpuModuleHandle module);
  /// Frees what was kept, if a wait succeeds. Returns whether anything was kept.
  bool retry();
  /// The last call. Anything that still cannot be freed or returned is leaked.
  void close();

 private:
  struct Kept {
    GpuAddress address = 0;
    bool is_pooled = false;
    GpuModuleHandle module = nullptr;
  };
  bool is_context_idle() const;
  /// Is all work before the event done? Asks for the whole context if the event is unknown.
  bool is_behind(GpuEvent end);
  /// Returns whether the memory went back.
  bool give_back(const Kept& kept) const;
  void give_kept_back();
  bool keeps_any() const { return !kept_.empty() || !lent_.empty(); }
  /// Every public call ends with this. It runs without the lock, since functions of a source may do
  /// anything.
  void return_unused();

  const GpuDriver& driver_;
  std::mutex mutex_;
  // A stream of our own: the default stream may not be used while a blocking stream captures.
  GpuStream stream_ = nullptr;
  std::vector<Kept> kept_;
  std::vector<SourcedMemory> lent_;    // may be in use
  std::vector<SourcedMemory> unused_;  // about to be returned
};

class GpuDevice : public std::enable_shared_from_this<GpuDevice> {
 public:
  /// Opens device `ordinal` and keeps its primary context. The driver outlives the device. Errors:
  /// Unavailable (no such device), Device.
  static Result<std::shared_ptr<GpuDevice>> open(const GpuDriver& driver, int ordinal = 0);
  ~GpuDevice();
  GpuDevice(const GpuDevice&) = delete;
  GpuDevice& operator=(const GpuDevice&) = delete;

  const GpuDriver& driver() const { return driver_; }
  int ordinal() const { return ordinal_; }
  const std::string& name() const { return name_; }  // "NVIDIA H100 80GB HBM3"
  const std::string& arch() const { return arch_; }  // "sm_90"
  int multiprocessors() const { return multiprocessors_; }
  /// Can a stream allocate memory in its order?
  bool has_memory_pools() const { return has_memory_pools_ != 0; }
  /// Thread-safe.
  GpuFreeing& freeing() const { return freeing_; }

  /// Can kernels of this device work at the address? Managed memory belongs to any device. Errors:
  /// InvalidArgument (memory of the host, of another device, or of unknown owner: says which),
  /// Device.
  Status check_memory(GpuAddress address) const;

  /// Makes the context current on the caller's thread while the Scope lives.
  class Scope {
   public:
    explicit Scope(const GpuDevice& device);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const GpuDevice& device_;
    bool is_pushed_;
  };

  Status status(GpuCode code, const char* what) const { return gpu_status(driver_, code, what); }

  /// Copies and waits for the end; the context need not be current.
  Status write(GpuAddress to, std::span<const std::uint8_t> bytes, GpuStream stream) const;
  Status read(std::span<std::uint8_t> to, GpuAddress from, GpuStream stream) const;

 private:
  explicit GpuDevice(const GpuDriver& driver) : driver_(driver), freeing_(driver) {}
  const GpuDriver& driver_;
  int ordinal_ = 0, device_ = 0, multiprocessors_ = 0, has_memory_pools_ = 0;
  GpuContext context_ = nullptr;
  std::string name_, arch_;
  mutable GpuFreeing freeing_;
};

/// Memory on a device; freed with the object. An empty one has address 0.
class GpuMemory {
 public:
  /// Allocates; contents are undefined. Allocates nothing for 0 bytes. Errors: OutOfMemory, Device.
  static Result<GpuMemory> allocate(std::shared_ptr<const GpuDevice> device,
                                    std::size_t size_bytes);
  /// Allocates in the order of a stream, without waiting for the device, if it has memory pools.
  /// Work of other streams must come after what the stream has now.
  static Result<GpuMemory> allocate_on(std::shared_ptr<const GpuDevice> device,
                                       std::size_t size_bytes, GpuStream stream);
  /// Takes memory from a source, at a multiple of 256. The source gets it back when nothing uses it
  /// any more. Errors: OutOfMemory; InvalidArgument (not the device's memory, or not at such a
  /// multiple), and the source then gets it back at once.
  static Result<GpuMemory> allocate_from(const MemorySource& source, MemoryUse use,
                                         std::shared_ptr<const GpuDevice> device,
                                         std::size_t size_bytes);
  GpuMemory() = default;
  ~GpuMemory() { release(); }
  GpuMemory(GpuMemory&& other) noexcept : held_(std::exchange(other.held_, {})) {}
  GpuMemory& operator=(GpuMemory&& other) noexcept;

  GpuAddress address() const { return held_.address; }
  std::size_t size_bytes() const { return held_.size_bytes; }
  /// Sets an event that is recorded after all work that uses the memory, and that outlives it.
  /// Without one the users are unknown, and the memory is freed when the device has finished all
  /// work.
  void used_until(GpuEvent end) { held_.end = end; }

 private:
  struct Held {
    std::shared_ptr<const GpuDevice> device;
    GpuAddress address = 0;
    std::size_t size_bytes = 0;
    bool is_pooled = false;
    GpuEvent end = nullptr;
    MemorySource source;  // the source of the memory, if it has one
    MemoryUse use = MemoryUse::Workspace;
  };
  void release();
  Held held_;
};

/// Host memory that is pinned while this lives, if the driver can. Pinning makes copies faster, and
/// makes them read the memory when their stream reaches them. Nothing else depends on it.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(std::shared_ptr<const GpuDevice> device, std::span<std::uint8_t> memory);

 private:
  struct Unpin {
    std::shared_ptr<const GpuDevice> device;
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Unpin> memory_;
};

/// Collects requests for memory, then allocates all of it together: in one block, in one block per
/// use if a source provides it, or apart if the driver says so.
class GpuArena {
 public:
  using Piece = std::size_t;
  static constexpr Piece kNone = SIZE_MAX;
  /// Requests a piece of memory, at a multiple of 256.
  Piece add(std::size_t size_bytes, MemoryUse use = MemoryUse::Workspace);
  /// Allocates all pieces, once: in the order of the stream, or from the source if there is one.
  /// Errors: those of GpuMemory.
  Status allocate(const std::shared_ptr<const GpuDevice>& device, GpuStream stream,
                  const MemorySource& source = {});
  /// 0 for kNone and for a piece of no bytes.
  GpuAddress address(Piece piece) const { return piece == kNone ? 0 : addresses_[piece]; }
  std::size_t size_bytes(Piece piece) const { return sizes_[piece]; }
  /// Sets the event of all pieces, as GpuMemory::used_until.
  void used_until(GpuEvent end);
  std::size_t total_bytes() const { return total_bytes_; }

 private:
  std::size_t block_bytes(const std::vector<Piece>& pieces) const;
  void place(const GpuMemory& block, const std::vector<Piece>& pieces);

  std::vector<std::size_t> sizes_;
  std::vector<MemoryUse> uses_;
  std::vector<GpuAddress> addresses_;
  std::vector<GpuMemory> blocks_;
  std::size_t total_bytes_ = 0;
};

}  // namespace cinch::rt
