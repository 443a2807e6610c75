// Steps of a synchronisation over MPI beside the sequential oracle: what each rank's process does.
#pragma once
#include <string>
#include <string_view>

#include "runtime/collective/transport.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

/// Three tensors, the largest of so many elements, one of them without a program; in pieces.
SyncCase subject_of(const std::string& program, std::string_view plan, std::uint32_t world,
                    std::int64_t elements = 20001);

/// This rank's update is that of the oracle, bit for bit, in every step.
void check_steps(const SyncCase& subject, rt::Transport& transport, const std::string& text);

}  // namespace cinch::testing
