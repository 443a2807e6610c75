// Ranks over UCX: this process is one of them, or it starts all of them.
#pragma once
#include <cstdint>
#include <memory>

#include "compiler/driver/options.h"
#include "compiler/driver/process/exit_code.h"
#include "runtime/collective/transport.h"

namespace cinch::driver {

// Is this process one rank (--rank, or RANK in the environment)?
bool is_ucx_rank(const TransportOptions& options);

// The transport of this rank. Throws CommandError.
std::unique_ptr<rt::Transport> open_ucx_rank(const TransportOptions& options);

// Starts this command as `world` ranks, and waits for them. They get a secret and a rendezvous if
// the user gives none. Returns the exit code of the first rank that fails; ranks that do not end
// after that are killed. A signal asks the ranks to stop. Throws CommandError.
ExitCode launch_ucx_ranks(const TransportOptions& options, std::uint32_t world);

}  // namespace cinch::driver
