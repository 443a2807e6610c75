// One rank of MPI, for tests: all ranks run the same tests in the same order.
#pragma once
#include <gtest/gtest.h>

#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::rt {

inline std::unique_ptr<Transport> open_transport(const MpiOptions& options = {}) {
  auto transport = open_mpi_transport(options);
  if (!transport) {
    ADD_FAILURE() << transport.error().message;
    std::exit(1);  // the launcher ends the other ranks
  }
  return std::move(*transport);
}

}  // namespace cinch::rt
