// The part of a rank's wire that stays on its device: exchanges have it there, behind those tasks
// that have only been put on the stream by then. On the host lie lengths, how the calls of a `sync`
// go, exchanges of kinds that the transport does not take from a device, and payloads that are
// added up there (Spread, Join); without a transport that takes the device's memory all of it does.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/gpu/device.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/rank_tasks.h"

namespace cinch::rt {

class DeviceWire {
 public:
  /// `plan` and `transport` outlive this, which goes before the memory. Whoever opens or ends it
  /// has the device's turn. `adds_there`: by codec, whether its payloads are added up on the
  /// device. Errors: OutOfMemory, Device.
  static Result<std::unique_ptr<DeviceWire>> open(const Plan& plan, const LentMemory& wire,
                                                  GpuStream stream, Transport& transport,
                                                  const std::vector<bool>& adds_there);
  ~DeviceWire();
  DeviceWire(const DeviceWire&) = delete;
  DeviceWire& operator=(const DeviceWire&) = delete;

  /// Is there any such part?
  bool is_used() const { return is_used_; }
  bool has(std::uint32_t slot) const { return is_used_ && !is_on_host_[slot]; }

  /// Behind the task's work on the stream, in the device's turn.
  Status mark_end(const Task& task);
  /// For an exchange whose earlier tasks have all been marked.
  Result<WirePlace> place_of(const Task& exchange, PieceMemory& memory);

 private:
  DeviceWire(const Plan& plan, LentMemory wire, GpuStream stream, Transport& transport);
  Status make_events();
  bool has_slots_of(const Task& exchange) const;
  std::size_t index_of(const Task& task) const {
    return static_cast<std::size_t>(&task - own_.tasks.data());
  }

  const RankPlan& own_;
  const LentMemory wire_;
  const GpuDevice* device_;
  GpuStream stream_;
  Transport& transport_;
  bool is_used_ = false;
  std::vector<bool> is_on_host_;  // by slot
  std::vector<GpuEvent> ends_;    // by task: reached when it has been done; null: none waits for it
  // Has nothing but what exchanges wait for, so that none waits for what was put on the rank's
  // stream a little later.
  GpuStream order_ = nullptr;
};

}  // namespace cinch::rt
