// Measures a transport, all ranks taking part.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "runtime/planner/network/network_model.h"

namespace cinch::rt {

struct ProbeOptions {
  std::uint64_t largest_bytes = 16 << 20;  // that a rank sends in one exchange
  /// About so long in all. What is slow is measured less often, and not up to the largest size.
  double seconds = 5;
  std::chrono::milliseconds timeout{30000};
};

/// All ranks call it with the same options, and have the same model from it. Errors: those of the
/// transport.
Result<NetworkModel> measure_network(Transport& transport, const ProbeOptions& options);

}  // namespace cinch::rt
