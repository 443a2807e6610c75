// Ranks that are processes, over UCX: TCP, shared memory, and RDMA if available. No launcher is
// needed: ranks find each other at an address of rank 0, or by a store that the caller provides.
#pragma once

#include "runtime/collective/transport.h"
#include "runtime/transports/ucx/rendezvous.h"

struct cinch_ucx_calls;  // ucx_abi.h NOLINT(readability-identifier-naming)

namespace cinch::rt {

inline constexpr std::uint32_t kMostUcxRanks = 1024;

struct UcxOptions {
  std::uint32_t rank = 0, world = 1;
  /// "HOST:PORT", where rank 0 listens until all ranks have connected. Empty: `store` is used.
  std::string rendezvous;
  std::shared_ptr<KeyValueStore> store;
  /// A secret, the same on all ranks, which prove to each other that they know it without sending
  /// it. Empty: anybody who reaches the rendezvous may take a rank's place.
  std::string secret;
  /// The network interface for ranks, "eth0"; empty: all that UCX finds.
  std::string interface;
  /// How long the other ranks may take to arrive.
  std::chrono::milliseconds timeout{30000};
  /// As UCX_TLS ("tcp", "posix"). Empty: shared memory if all ranks are on one machine and it is
  /// large enough, TCP if it is not (the log says so), else UCX chooses. The environment's UCX_TLS
  /// overrides both.
  std::string transports;
};

/// Opens the transport; all ranks call it. One thread at a time uses it. Bytes are sent from, and
/// received to, the caller's memory; floats are added in rank order. If one rank has an error, all
/// ranks get it. Errors: InvalidArgument (no such rank, more ranks than kMostUcxRanks, no such
/// interface, secrets that differ, versions that differ), Unavailable (no UCX), Io (the rendezvous'
/// port is in use), TimedOut (some ranks did not arrive), Device (UCX's), Cancelled (a rank left).
Result<std::unique_ptr<Transport>> open_ucx_transport(const UcxOptions& options);

/// The table lives as long as the process. The module is the one that CINCH_UCX names, else the one
/// where this build's libraries lie. UCX is the file libucp.so.0 that CINCH_UCX_LIBRARY names (a
/// wheel's, say), else the one that the loader finds. Errors, on every call: Unavailable (no UCX,
/// no module, another version).
const Result<const cinch_ucx_calls*>& ucx_library();

/// How much shared memory the ranks of one machine need, if a folder with `folder_bytes` is too
/// small for them; else empty.
std::string lack_of_shared_memory(std::uint32_t world, std::uint64_t folder_bytes);

}  // namespace cinch::rt
