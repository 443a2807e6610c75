// Ranks on GPUs over NVIDIA's NCCL, which is opened at run time.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/gpu/device.h"

namespace cinch::rt {

/// The id that all ranks of a world share: one rank makes it, the caller sends it to the others.
struct NcclId {
  std::array<char, 128> bytes{};
};

/// Shared by ranks in one process: NCCL does not tell why a rank gave up, so they tell each other.
class NcclNeighbours {
 public:
  /// Keeps the first error.
  void tell(const Error& error);
  /// Ok while nobody has given up.
  Status heard() const;

 private:
  mutable std::mutex mutex_;
  Status heard_ = Ok{};
};

struct NcclOptions {
  /// The rank's GPU.
  std::shared_ptr<const GpuDevice> device;
  /// Adds floats in rank order on the host, instead of NCCL's own order. All ranks agree either
  /// way.
  bool is_exact = false;
  /// How long the other ranks may take to open theirs.
  std::chrono::milliseconds timeout{30000};
  /// Null: the ranks are processes, or learn of each other's errors by their time-outs.
  std::shared_ptr<NcclNeighbours> neighbours;
  /// Path of the library; empty: the one that CINCH_NCCL names, or else libnccl.so.2.
  std::string library;
};

/// 23003 for 2.30.3. Errors: Unavailable (no NCCL).
Result<int> nccl_library_version(const std::string& library = {});

/// Errors: Unavailable (no NCCL), Device (the library's).
Result<NcclId> make_nccl_id(const std::string& library = {});

/// Opens the transport; all ranks call it with the same id. One thread at a time uses it. It takes
/// device memory, and host memory, which it copies through device memory that is allocated once and
/// kept. Each direction between two ranks has a communicator of its own for messages, made at the
/// first use, so that a message delays only the ones behind it. Exchanges of no bytes end at once.
/// NCCL does not tell which rank a collective waits for. A rank that gives up or leaves waits at
/// most seconds for ranks that have stopped, then abandons what still uses the library. Errors:
/// Unavailable (no NCCL), TimedOut (some ranks did not arrive), Device (the library's or the
/// driver's), InvalidArgument.
Result<std::unique_ptr<Transport>> open_nccl_transport(const NcclId& id, std::uint32_t rank,
                                                       std::uint32_t world,
                                                       const NcclOptions& options);

/// The same over an existing ncclComm_t of the same library; all of its ranks call it. The
/// communicator stays its owner's. The owner uses it for nothing else meanwhile, and aborts it
/// after `abandon`: until then memory of running exchanges stays in use. Errors: also
/// InvalidArgument (the communicator of another device).
Result<std::unique_ptr<Transport>> open_nccl_transport(void* communicator,
                                                       const NcclOptions& options);

}  // namespace cinch::rt
