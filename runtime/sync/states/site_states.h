// The states that a rank keeps for one piece at one site, on any device.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/device/compute_device.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

struct SiteKey {
  std::uint32_t piece = 0;  // of the plan
  Site site = Site::Worker;
};

class SiteStates {
 public:
  /// The states of one tensor of the list, which is open on the device. All arguments outlive this.
  SiteStates(ListSession& list, std::size_t tensor, const ComputeDevice& device)
      : list_(list), tensor_(tensor), device_(device) {}

  const ProgramInfo& info() const { return list_.info(); }
  /// Returns the states as a state file (state_file.h), or sets them. Errors: as
  /// Session::set_states; Device.
  Result<std::vector<std::uint8_t>> as_bytes() const {
    const auto turn = take_turn(device_);
    return list_.states_as_bytes(tensor_);
  }
  Status set(std::span<const std::uint8_t> bytes) {
    const auto turn = take_turn(device_);
    return list_.set_states(tensor_, bytes);
  }

 private:
  ListSession& list_;
  std::size_t tensor_;
  const ComputeDevice& device_;
};

using SiteVisitor = std::function<void(const SiteKey& key, SiteStates& states)>;

}  // namespace cinch::rt
