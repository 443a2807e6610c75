// How ranks start and meet, by transport: MPI, UCX and NCCL.
#pragma once

#include <sys/types.h>

#include <functional>

#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/process/files.h"
#include "runtime/collective/loopback.h"
#include "runtime/planner/network/network_model.h"
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

// Processes that the command starts: mpirun, or ranks.

// Set in the environment of ranks that the command starts, so that no rank starts others whatever
// its launcher says.
inline constexpr const char* kLaunched = "CINCH_LAUNCHED";

// Did a cinch command start this process as a rank?
bool is_started_by_command();
// Did Open MPI's mpirun start it?
bool is_started_by_mpirun();
// Is this process the first of the ranks that a launcher started, or no rank at all?
bool is_first_rank();

// Starts a child; negative: it could not be started. The child has a process group of its own:
// Ctrl-C in a terminal reaches this process, which passes it on. The child ends when this process
// does, and has no standard input.
pid_t start_child(std::vector<std::string> command);

// Ranks that are threads of this process.

// Calls body(rank) for all ranks at once and returns when all have ended. Throws what one of them
// has thrown. Errors of a rank itself take precedence over errors caused by another rank.
void run_on_rank_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& body);

// How fast the links of loopback are.
inline rt::LinkShape link_shape(const TransportOptions& options) {
  return {options.latency_us / 1e6, options.megabits_per_second * 1e6 / 8};
}
// Measures exchanges between ranks that are threads; `open` opens the transport of a rank.
rt::NetworkModel measure_on_threads(
    std::uint32_t world, const rt::ProbeOptions& probe,
    const std::function<std::unique_ptr<rt::Transport>(std::uint32_t)>& open);

/// The ranks of one tensor in one process: one thread each, which meet in memory.
class RankGroup {
 public:
  RankGroup(const CodecFactory& factory, Shape shape, std::uint32_t world);

  /// Runs one step of a program with a `sync`; gradients and updates by rank. Throws the
  /// CommandError of the lowest rank that failed by itself.
  std::vector<std::vector<float>> sync(std::span<const rt::ConstTensorView> gradients,
                                       std::uint64_t step);
  /// Bytes that a rank gave to collectives in the last step: the maximum over ranks.
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  Codec& codec(std::uint32_t rank) { return *codecs_.at(rank); }
  std::uint32_t world() const { return static_cast<std::uint32_t>(codecs_.size()); }

 private:
  std::vector<std::unique_ptr<Codec>> codecs_;
  std::uint64_t sent_bytes_ = 0;
};

}  // namespace cinch::driver
