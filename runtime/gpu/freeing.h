// What goes back to the driver, or to whoever lent it: memory and modules, never while work that
// may use them runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/core/memory_source.h"
#include "runtime/gpu/driver.h"

namespace cinch::rt {

/// Memory that a source gave.
struct SourcedMemory {
  MemorySource source;
  void* memory = nullptr;
  std::size_t size_bytes = 0;
  MemoryUse use = MemoryUse::Workspace;
};

/// Of one context, which is current in all calls. Where the driver refuses to wait, because some
/// stream captures, things are kept until a later wait succeeds.
class GpuFreeing {
 public:
  explicit GpuFreeing(const GpuDriver& driver) : driver_(driver) {}
  GpuFreeing(const GpuFreeing&) = delete;
  GpuFreeing& operator=(const GpuFreeing&) = delete;

  /// Before the first memory of a pool. Errors: Device.
  Status prepare();
  /// `end`: an event behind all work that used the memory; null: unknown, and the whole context is
  /// waited for.
  void free(GpuAddress address, bool is_pooled, GpuEvent end);
  /// The same of memory that a source gave, which takes it back on the thread of this call, or of a
  /// later one.
  void give_back(SourcedMemory lent, GpuEvent end);
  /// After its sessions: what was kept of them may be running its kernels.
  void unload(GpuModuleHandle module);
  /// Frees what was kept, where a wait succeeds. Was there any?
  bool retry();
  /// The last of all calls. What still cannot be freed, or go back, does not.
  void close();

 private:
  struct Kept {
    GpuAddress address = 0;
    bool is_pooled = false;
    GpuModuleHandle module = nullptr;
  };
  bool is_context_idle() const;
  /// Has all work before the event been done, or the context's if that cannot be told?
  bool is_behind(GpuEvent end);
  /// Whether it went back.
  bool give_back(const Kept& kept) const;
  void give_kept_back();
  bool keeps_any() const { return !kept_.empty() || !lent_.empty(); }
  /// Without the lock, as its sources' functions may do anything. Ends every call above.
  void return_unused();

  const GpuDriver& driver_;
  std::mutex mutex_;
  // Of our own: the default stream may not be used while a blocking stream captures.
  GpuStream stream_ = nullptr;
  std::vector<Kept> kept_;
  std::vector<SourcedMemory> lent_;    // that may be in use
  std::vector<SourcedMemory> unused_;  // on its way back
};

}  // namespace cinch::rt
