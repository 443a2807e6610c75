// What tests of MPI share: a transport, the emulated GPU of a rank's process, steps against the
// oracle.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/gpu/device.h"
#include "runtime/sync/sync_session.h"
#include "runtime/transports/mpi/mpi_transport.h"
#include "tests/collective/support/sync_ranks.h"

namespace cinch::testing {

/// One per process: exchanges that ranks gave up may still write to its memory.
class CountedGpu {
 public:
  static CountedGpu& of_process();

  const std::shared_ptr<const rt::GpuDevice>& device() const { return device_; }
  std::mutex& turns() { return turns_; }
  /// Has the program of each expression (see compiled_library), in order.
  rt::SyncDevice sync_device(const std::vector<std::string>& expressions);

  /// Bytes copied between host and device so far.
  static std::uint64_t num_copied_bytes();
  /// Nonzero bytes in whole pages of freed memory, as the emulator left them.
  std::uint64_t num_lost_bytes();

 private:
  CountedGpu();
  std::mutex turns_;
  std::shared_ptr<const rt::GpuDevice> device_;
};

// Compares steps of a synchronisation over MPI with the sequential oracle: the part of each rank's
// process.

/// Three tensors in pieces, the largest with this many elements, one without a program.
SyncCase subject_of(const std::string& program, std::string_view plan, std::uint32_t world,
                    std::int64_t elements = 20001);

/// Checks that this rank's update equals the oracle's, bit for bit, in every step.
void check_steps(const SyncCase& subject, rt::Transport& transport, const std::string& text);

}  // namespace cinch::testing

namespace cinch::rt {

// One rank of MPI, for tests: all ranks run the same tests in the same order.

inline std::unique_ptr<Transport> open_transport(const MpiOptions& options = {}) {
  auto transport = open_mpi_transport(options);
  if (!transport) {
    ADD_FAILURE() << transport.error().message;
    std::exit(1);  // the launcher ends the other ranks
  }
  return std::move(*transport);
}

}  // namespace cinch::rt
