// What goes back to the driver: memory and modules, never while work that may use them runs.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/gpu/driver.h"

namespace cinch::rt {

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
  /// After its sessions: what was kept of them may be running its kernels.
  void unload(GpuModuleHandle module);
  /// Frees what was kept, where a wait succeeds. Was there any?
  bool retry();
  /// The last of all calls. What still cannot be freed is not.
  void close();

 private:
  struct Kept {
    GpuAddress address = 0;
    bool is_pooled = false;
    GpuModuleHandle module = nullptr;
  };
  bool is_context_idle() const;
  /// Whether it went back.
  bool give_back(const Kept& kept) const;
  void give_back_or_keep(const Kept& kept);
  void give_kept_back();

  const GpuDriver& driver_;
  std::mutex mutex_;
  // Of our own: the default stream may not be used while a blocking stream captures.
  GpuStream stream_ = nullptr;
  std::vector<Kept> kept_;
};

}  // namespace cinch::rt
