// The states that a rank keeps for one piece at one site, wherever they lie.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

struct SiteKey {
  std::uint32_t piece = 0;  // of the plan
  Site site = Site::Worker;
};

class SiteStates {
 public:
  SiteStates() = default;
  SiteStates(const SiteStates&) = delete;
  SiteStates& operator=(const SiteStates&) = delete;
  virtual ~SiteStates() = default;

  virtual const ProgramInfo& info() const = 0;
  /// As a state file (state_file.h), and back. Errors: as Session::set_states; Device.
  virtual Result<std::vector<std::uint8_t>> as_bytes() const = 0;
  virtual Status set(std::span<const std::uint8_t> bytes) = 0;
};

using SiteVisitor = std::function<void(const SiteKey& key, SiteStates& states)>;

}  // namespace cinch::rt
