// One GPU of a driver: its context, memory on it, and calls with errors as values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/memory_source.h"
#include "runtime/gpu/driver.h"
#include "runtime/gpu/freeing.h"

namespace cinch::rt {

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
  /// Can memory be allocated in the order of a stream?
  bool has_memory_pools() const { return has_memory_pools_ != 0; }
  /// Thread-safe.
  GpuFreeing& freeing() const { return freeing_; }

  /// Can kernels of this device work at the address? Managed memory counts as any device's. Errors:
  /// InvalidArgument (memory of the host, of another device, or of nobody: says which), Device.
  Status check_memory(GpuAddress address) const;

  /// Makes the context current for the caller's thread while it lives.
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

  /// Copies that wait until they are done; a context need not be current.
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
  /// Errors: OutOfMemory, Device. Contents are undefined. Of 0 bytes nothing is allocated.
  static Result<GpuMemory> allocate(std::shared_ptr<const GpuDevice> device,
                                    std::size_t size_bytes);
  /// The same in the order of a stream, without waiting for the device, where it has memory pools:
  /// work of other streams comes after what the stream has now.
  static Result<GpuMemory> allocate_on(std::shared_ptr<const GpuDevice> device,
                                       std::size_t size_bytes, GpuStream stream);
  /// Memory of a source, at a multiple of 256, which takes it back when nothing uses it any more.
  /// Errors: OutOfMemory; InvalidArgument (no memory of the device, or not at such a multiple),
  /// whereupon the source has it back.
  static Result<GpuMemory> allocate_from(const MemorySource& source, MemoryUse use,
                                         std::shared_ptr<const GpuDevice> device,
                                         std::size_t size_bytes);
  GpuMemory() = default;
  ~GpuMemory() { release(); }
  GpuMemory(GpuMemory&& other) noexcept;
  GpuMemory& operator=(GpuMemory&& other) noexcept;

  GpuAddress address() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// An event that outlives the memory and is recorded behind all work that uses it. Else it is not
  /// known who does, and the memory goes back when the device has done everything.
  void used_until(GpuEvent end) { end_ = end; }

 private:
  void release();
  std::shared_ptr<const GpuDevice> device_;
  GpuAddress address_ = 0;
  std::size_t size_bytes_ = 0;
  bool is_pooled_ = false;
  GpuEvent end_ = nullptr;
  MemorySource source_;  // of memory that is lent
  MemoryUse use_ = MemoryUse::Workspace;
};

/// Memory of the host that is pinned while this lives, if the driver can: nothing depends on it but
/// how fast copies are, and that they take what is there when their stream comes to them.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(std::shared_ptr<const GpuDevice> device, std::span<std::uint8_t> memory);
  ~PinnedMemory() { release(); }
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;

 private:
  void release();
  std::shared_ptr<const GpuDevice> device_;
  std::uint8_t* memory_ = nullptr;
};

/// Many pieces of memory that are asked for first and allocated together: in one block, or one for
/// each use where a source gives them, or apart where the driver says so.
class GpuArena {
 public:
  using Piece = std::size_t;
  static constexpr Piece kNone = SIZE_MAX;
  /// A piece of memory, at a multiple of 256.
  Piece add(std::size_t size_bytes, MemoryUse use = MemoryUse::Workspace);
  /// Once, in the order of the stream, or from the source if it is one. Errors as of GpuMemory.
  Status allocate(const std::shared_ptr<const GpuDevice>& device, GpuStream stream,
                  const MemorySource& source = {});
  /// 0 for kNone and for a piece of no bytes.
  GpuAddress address(Piece piece) const { return piece == kNone ? 0 : addresses_[piece]; }
  std::size_t size_bytes(Piece piece) const { return sizes_[piece]; }
  /// As of GpuMemory, of all pieces.
  void used_until(GpuEvent end);
  std::size_t total_bytes() const { return total_bytes_; }

 private:
  std::vector<std::vector<Piece>> pieces_by_block(bool is_apart, bool is_lent) const;
  std::size_t block_bytes(const std::vector<Piece>& pieces) const;
  void place(const GpuMemory& block, const std::vector<Piece>& pieces);

  std::vector<std::size_t> sizes_;
  std::vector<MemoryUse> uses_;
  std::vector<GpuAddress> addresses_;
  std::vector<GpuMemory> blocks_;
  std::size_t total_bytes_ = 0;
};

}  // namespace cinch::rt
