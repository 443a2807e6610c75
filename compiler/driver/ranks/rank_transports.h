// How ranks start and meet, by transport: MPI, UCX and NCCL.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/driver/process/exit_code.h"
#include "runtime/collective/transport.h"
#include "runtime/transports/nccl/nccl_transport.h"

namespace cinch::driver {

// Ranks that mpirun started, and ranks that the command makes it start.

// Has mpirun, or another launcher, started this process as a rank?
bool is_launched_rank();

// Makes mpirun run the command with these words on `world` ranks, and returns its exit code. A
// signal asks the ranks to stop; a second one ends them. Throws CommandError (Unavailable) if there
// is no MPI or no mpirun.
ExitCode launch_mpi_ranks(const std::vector<std::string>& words, std::uint32_t world);

// Ranks over UCX: this process is one of them, or it starts all of them.

// Is this process one rank (--rank, or RANK in the environment)?
bool is_ucx_rank(const TransportOptions& options);

// The transport of this rank. Throws CommandError.
std::unique_ptr<rt::Transport> open_ucx_rank(const TransportOptions& options);

// Starts this command as `world` ranks, and waits for them. They get a secret and a rendezvous if
// the user gives none. Returns the exit code of the first rank that fails; ranks that do not end
// after that are killed. A signal asks the ranks to stop. Throws CommandError.
ExitCode launch_ucx_ranks(const TransportOptions& options, std::uint32_t world);

/// Ranks of this process over NCCL, each on a GPU.
class NcclRanks {
 public:
  // `ranks` 0: one for each GPU. Throws CommandError (Unavailable) if there is no NCCL, no GPU, or
  // fewer GPUs than ranks.
  NcclRanks(const TransportOptions& options, std::uint32_t ranks);

  std::uint32_t world() const { return world_; }
  // Opens a rank's transport. All ranks call it, each on its thread. Throws CommandError.
  std::unique_ptr<rt::Transport> open(std::uint32_t rank) const;

 private:
  std::uint32_t world_ = 0;
  int num_devices_ = 0;
  rt::NcclId id_;
  rt::NcclOptions options_;
  const rt::GpuDriver* driver_ = nullptr;
};

}  // namespace cinch::driver
