// What all ranks must have in common before they synchronise.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "runtime/collective/transport.h"

namespace cinch::rt {

/// One thing that is the same on all ranks, or nothing runs: "parameters of topk", "ratio=0.001".
struct CommonFact {
  std::string name;
  std::string value;
};

/// One small exchange; a second one where ranks differ, so that each can say who has what. Every
/// rank calls this. Errors: InvalidArgument (on every rank; names the first fact that differs, and
/// each value with its ranks), those of the transport.
Status agree_on(const std::vector<CommonFact>& facts, Transport& transport,
                std::chrono::milliseconds timeout);

}  // namespace cinch::rt
