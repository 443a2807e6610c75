// Checks the facts that all ranks must share before they synchronise.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "runtime/collective/transport.h"

namespace cinch::rt {

/// A fact that must be the same on all ranks, as a name and a value: "parameters of topk",
/// "ratio=0.001".
struct CommonFact {
  std::string name;
  std::string value;
};

/// Compares the facts in one small exchange. If ranks differ, a second exchange tells each rank who
/// has what. Every rank calls this. Errors: InvalidArgument (on every rank; names the first fact
/// that differs, and each value with its ranks), those of the transport.
Status agree_on(const std::vector<CommonFact>& facts, Transport& transport,
                std::chrono::milliseconds timeout);

}  // namespace cinch::rt
