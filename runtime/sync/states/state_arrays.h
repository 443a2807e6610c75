// The states that a rank keeps, one array each: by tensor, site and name.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/sync/states/restore_states.h"

namespace cinch::rt {

/// A state of some elements of one tensor, as the program stores it.
struct StateArray {
  std::uint32_t tensor = 0;  // of the plan
  Site site = Site::Worker;
  std::int64_t first = 0, num_elems = 0;  // elements of the tensor that the state belongs to
  std::string name, dtype;
  std::vector<std::uint8_t> bytes;
};

/// Lists all states, by tensor, element, site and in the program's order. Errors: those of
/// SiteStates.
Result<std::vector<StateArray>> list_state_arrays(const Plan& plan, const EverySite& every_site);
/// Replaces one of them, by its index in the list. Errors: OutOfRange (no such index),
/// InvalidArgument (another length), those of SiteStates.
Status set_state_array(const Plan& plan, const EverySite& every_site, std::size_t place,
                       std::span<const std::uint8_t> bytes);

}  // namespace cinch::rt
