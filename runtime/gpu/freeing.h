// Frees memory and modules, to the driver or to their source, never while running work may use
// them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/core/memory_source.h"
#include "runtime/gpu/driver.h"

namespace cinch::rt {

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

}  // namespace cinch::rt
