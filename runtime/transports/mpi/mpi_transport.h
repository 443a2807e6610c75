// Ranks that are processes started by mpirun or another MPI launcher.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>

#include "runtime/collective/transport.h"
#include "runtime/core/error.h"

struct cinch_mpi_calls;  // mpi_abi.h NOLINT(readability-identifier-naming)

namespace cinch::rt {

/// May MPI get addresses of device memory? Auto: if the library says that it takes them.
enum class CudaAware : std::uint8_t { Auto, Yes, No };

struct MpiOptions {
  /// Adds floats in rank order on our side, instead of MPI's own order. All ranks agree either way.
  bool is_exact = false;
  /// How long the other ranks may take to open theirs, including MPI_Init, and to reach the exit of
  /// the process.
  std::chrono::milliseconds timeout{30000};
  /// The most bytes per call of the library, whose sizes have 31 bits.
  std::uint64_t most_bytes = std::uint64_t{1} << 30;
  /// For ranks that compute on a device; ranks may differ. A library that gets such addresses and
  /// cannot take them ends the process.
  CudaAware cuda_aware = CudaAware::Auto;
};

/// Opens the transport; all ranks call it equally often. The first call initialises MPI if the
/// process has not, and MPI is then finalised when the process exits. One thread at a time uses the
/// transport; after an error only abandon may be called. Bytes are copied to memory of the
/// transport, which a message that nobody waits for any more may use to the end of the process. The
/// caller's memory is free as soon as an exchange has ended or is given up. Memory of a device must
/// have been lent. Messages, and exchanges made of messages (all-gathers, all-to-alls), can use it.
/// Collectives of MPI use host memory, since libraries that take device memory may not take it in
/// non-blocking collectives; so do reductions on our side. Errors: Unavailable (no MPI), TimedOut
/// (some ranks did not arrive), Device (the library's).
Result<std::unique_ptr<Transport>> open_mpi_transport(const MpiOptions& options = {});

/// Finalises MPI if it was initialised here, so that the process's exit, which reports nothing,
/// need not wait. All ranks call it when they have no transport left; none can be opened
/// afterwards. Errors: TimedOut (some ranks did not arrive), Unavailable, Device.
Status leave_mpi(std::chrono::milliseconds timeout);

/// The table lives as long as the process. The module is the one that CINCH_MPI names, else the one
/// where this build's libraries lie. Errors, on every call: Unavailable (no such file, no MPI,
/// another version).
const Result<const cinch_mpi_calls*>& mpi_library();

}  // namespace cinch::rt
