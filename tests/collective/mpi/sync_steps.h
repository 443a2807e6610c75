// Compares steps of a synchronisation over MPI with the sequential oracle: the part of each rank's
// process.
#pragma once
#include <string>
#include <string_view>

#include "runtime/collective/transport.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

/// Three tensors in pieces, the largest with this many elements, one without a program.
SyncCase subject_of(const std::string& program, std::string_view plan, std::uint32_t world,
                    std::int64_t elements = 20001);

/// Checks that this rank's update equals the oracle's, bit for bit, in every step.
void check_steps(const SyncCase& subject, rt::Transport& transport, const std::string& text);

}  // namespace cinch::testing
