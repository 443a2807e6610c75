// Ranks that are processes, over UCX: TCP, shared memory, and RDMA where there is. No launcher is
// needed: ranks find each other at an address of rank 0, or by a store that the caller lends.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/collective/transport.h"
#include "runtime/transports/ucx/rendezvous.h"

namespace cinch::rt {

inline constexpr std::uint32_t kMostUcxRanks = 1024;

struct UcxOptions {
  std::uint32_t rank = 0, world = 1;
  /// "HOST:PORT", where rank 0 listens until all ranks have come. Empty: `store` is used.
  std::string rendezvous;
  std::shared_ptr<KeyValueStore> store;
  /// The same on all ranks, which prove to each other that they have it without sending it. Empty:
  /// anybody who reaches the rendezvous may take a rank's place.
  std::string secret;
  /// The network interface that ranks use, "eth0"; empty: all that UCX finds.
  std::string interface;
  /// So long may the other ranks take to come.
  std::chrono::milliseconds timeout{30000};
  /// As UCX_TLS ("tcp", "posix"); empty: shared memory where all ranks are on one machine, else
  /// what UCX chooses. The environment's UCX_TLS wins over both.
  std::string transports;
};

/// All ranks call it. The transport is used by one thread at a time. Bytes are sent from, and
/// received to, the caller's memory; floats are added in rank order. Errors, which all ranks get
/// if one has one: InvalidArgument (no such rank, more ranks than kMostUcxRanks, no such interface,
/// secrets that differ, versions that differ), Unavailable (no UCX), Io (the rendezvous' port is in
/// use), TimedOut (ranks that have not come), Device (UCX's), Cancelled (a rank has gone).
Result<std::unique_ptr<Transport>> open_ucx_transport(const UcxOptions& options);

}  // namespace cinch::rt
