// The part of a rank's wire that stays on its device. Exchanges use it there, after tasks that may
// only have been put on the stream. The rest of the wire lies on the host: lengths, outcomes of
// `sync` calls, exchanges of kinds that the transport does not take from a device, and payloads
// that the host adds up (Spread, Join). If the transport does not take the device's memory at all,
// all of the wire lies on the host.
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
  /// Opens the wire. `plan` and `transport` outlive this; destroy it before the memory. Whoever
  /// opens or ends it holds the device's turn. `adds_there`: by codec, whether its payloads are
  /// added on the device. Errors: OutOfMemory, Device.
  static Result<std::unique_ptr<DeviceWire>> open(const Plan& plan, const LentMemory& wire,
                                                  GpuStream stream, Transport& transport,
                                                  const std::vector<bool>& adds_there);
  ~DeviceWire();
  DeviceWire(const DeviceWire&) = delete;
  DeviceWire& operator=(const DeviceWire&) = delete;

  /// Does any part of the wire lie on the device?
  bool is_used() const { return is_used_; }
  bool has(std::uint32_t slot) const { return is_used_ && !is_on_host_[slot]; }

  /// Records the end of the task's work on the stream. Call it in the device's turn.
  Status mark_end(const Task& task);
  /// The place for an exchange; all tasks before it must have been marked.
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
  std::vector<GpuEvent> ends_;    // by task: an event at its end; null: no exchange waits for it
  // A stream that has only the waits of exchanges, so that an exchange does not wait for later work
  // on the rank's stream.
  GpuStream order_ = nullptr;
};

}  // namespace cinch::rt
