// Measures a transport. All ranks take part.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/planner/network/network_model.h"

namespace cinch::rt {

struct ProbeOptions {
  std::uint64_t largest_bytes = 16 << 20;  // the most that a rank sends in one exchange
  /// About the time of all measurements. Slow exchanges are measured less often, and not up to the
  /// largest size.
  double seconds = 5;
  std::chrono::milliseconds timeout{30000};
};

/// Measures the network. All ranks call it with the same options and get the same model. Errors:
/// those of the transport.
Result<NetworkModel> measure_network(Transport& transport, const ProbeOptions& options);

}  // namespace cinch::rt
