// Ranks that are processes which mpirun, or another launcher of MPI, has started.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

#include "runtime/collective/transport.h"

namespace cinch::rt {

/// Is MPI given addresses of a device's memory? Auto: where the library says that it takes them.
enum class CudaAware : std::uint8_t { Auto, Yes, No };

struct MpiOptions {
  /// Floats are added in rank order by us, not by the library in an order of its own; ranks agree
  /// either way.
  bool is_exact = false;
  /// So long may the other ranks take to open theirs, MPI_Init included, and to come to the exit of
  /// the process.
  std::chrono::milliseconds timeout{30000};
  /// The library is given no more at a time: its sizes are of 31 bits.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;
  /// Of ranks that compute on a device; ranks need not be alike in it. A library that is given such
  /// addresses and cannot take them ends the process.
  CudaAware cuda_aware = CudaAware::Auto;
};

/// All ranks call it, as often as the others. MPI is initialised with the first call if the process
/// has not done so, and then finalised when the process exits. The transport is used by one thread
/// at a time; after an error it is good for nothing but abandon. What is exchanged is copied
/// to memory of the transport, which a message that no one waits for any more may use to the end of
/// the process: the caller's memory is his as soon as an exchange has ended or is given up. In
/// memory of a device, which must have been lent, lie messages and what is made of messages
/// (all-gathers, all-to-alls); collectives of MPI are the host's, since libraries that take a
/// device's memory may not take it in those that do not block, and so is what is joined here.
/// Errors: Unavailable (no MPI), TimedOut (ranks that have not come), Device (the library's).
Result<std::unique_ptr<Transport>> open_mpi_transport(const MpiOptions& options = {});

/// All ranks call it when they have no transport any more. Finalises MPI if it was initialised
/// here, so that the process's exit, which tells nobody what it waits for, need not; no transport
/// can be opened after it. Errors: TimedOut (ranks that have not come), Unavailable, Device.
Status leave_mpi(std::chrono::milliseconds timeout);

}  // namespace cinch::rt
