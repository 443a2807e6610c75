// Bodies of freeing.h.
#include "runtime/gpu/freeing.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/gpu/beside_captures.h"

namespace cinch::rt {
void GpuFreeing::close() {
  retry();
  if (stream_ != nullptr) (void)driver_.stream_destroy(stream_);
}

Status GpuFreeing::prepare() {
  const std::lock_guard lock(mutex_);
  if (stream_ != nullptr) return Ok{};
  const GpuCode code = driver_.stream_create(&stream_, kGpuStreamNonBlocking);
  return gpu_status(driver_, code, "making a stream");
}

void GpuFreeing::free(GpuAddress address, bool is_pooled, GpuEvent end) {
  const Kept freed{.address = address, .is_pooled = is_pooled};
  {
    const std::lock_guard lock(mutex_);
    const BesideCaptures beside(driver_);
    // For memory that is not pooled the driver itself waits.
    const bool is_unused = !is_pooled || is_behind(end);
    if (!is_unused || !give_back(freed)) kept_.push_back(freed);
  }
  return_unused();
}

void GpuFreeing::give_back(SourcedMemory lent, GpuEvent end) {
  {
    const std::lock_guard lock(mutex_);
    const BesideCaptures beside(driver_);
    (is_behind(end) ? unused_ : lent_).push_back(std::move(lent));
  }
  return_unused();
}

void GpuFreeing::unload(GpuModuleHandle module) {
  {
    const std::lock_guard lock(mutex_);
    const BesideCaptures beside(driver_);
    if (keeps_any() && is_context_idle()) give_kept_back();
    const Kept freed{.module = module};
    if (keeps_any() || !give_back(freed)) kept_.push_back(freed);
  }
  return_unused();
}

bool GpuFreeing::retry() {
  {
    const std::lock_guard lock(mutex_);
    if (!keeps_any()) return false;
    const BesideCaptures beside(driver_);
    if (is_context_idle()) give_kept_back();
  }
  return_unused();
  return true;
}

void GpuFreeing::return_unused() {
  std::vector<SourcedMemory> unused;
  {
    const std::lock_guard lock(mutex_);
    unused.swap(unused_);
  }
  if (unused.empty()) return;
  const BesideCaptures beside(driver_);
  for (const SourcedMemory& lent : unused) {
    lent.source.release(lent.source.context.get(), lent.memory, lent.size_bytes, lent.use);
  }
}

bool GpuFreeing::is_behind(GpuEvent end) {
  if (end != nullptr && driver_.event_synchronize(end) == kGpuSuccess) return true;
  const bool is_idle = is_context_idle();
  if (is_idle) give_kept_back();
  return is_idle;
}

bool GpuFreeing::is_context_idle() const {
  return driver_.context_synchronize() == kGpuSuccess;
}

bool GpuFreeing::give_back(const Kept& kept) const {
  if (kept.module != nullptr) return driver_.module_unload(kept.module) == kGpuSuccess;
  const GpuCode code = kept.is_pooled ? driver_.memory_free_async(kept.address, stream_)
                                      : driver_.memory_free(kept.address);
  return code == kGpuSuccess;
}

void GpuFreeing::give_kept_back() {
  std::erase_if(kept_, [this](const Kept& kept) { return give_back(kept); });
  std::ranges::move(lent_, std::back_inserter(unused_));
  lent_.clear();
}

}  // namespace cinch::rt
