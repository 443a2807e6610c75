// Ranks on GPUs, by NVIDIA's NCCL, which is opened at run time.
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

/// What all ranks of a world must have in common: one of them makes it, the caller brings it to the
/// others.
struct NcclId {
  std::array<char, 128> bytes{};
};

/// Of ranks that share a process: NCCL tells nobody why a rank gave up, so they tell each other.
class NcclNeighbours {
 public:
  /// The first one counts.
  void tell(const Error& error);
  /// Ok while nobody has given up.
  Status heard() const;

 private:
  mutable std::mutex mutex_;
  Status heard_ = Ok{};
};

struct NcclOptions {
  /// Where the rank's work is done.
  std::shared_ptr<const GpuDevice> device;
  /// Floats are added in rank order, on the host, not by NCCL in an order of its own; ranks agree
  /// either way.
  bool is_exact = false;
  /// So long may the other ranks take to open theirs.
  std::chrono::milliseconds timeout{30000};
  /// Null: the ranks are processes, or learn of each other's faults by their time-outs.
  std::shared_ptr<NcclNeighbours> neighbours;
  /// The library's file; empty: the one that CINCH_NCCL names, or else libnccl.so.2.
  std::string library;
};

/// 23003 for 2.30.3. Errors: Unavailable (no NCCL).
Result<int> nccl_library_version(const std::string& library = {});

/// Errors: Unavailable (no NCCL), Device (the library's).
Result<NcclId> make_nccl_id(const std::string& library = {});

/// All ranks call it with the same id. The transport is used by one thread at a time, takes memory
/// of the host, which goes through memory of the device that is allocated once and kept, and of the
/// device. A message has a communicator of its own for each way between two ranks, made when it is
/// first used, so that it holds up nothing but those behind it. Exchanges of no bytes end at once.
/// NCCL does not say which rank a collective waits for. Who gives up or leaves waits seconds at
/// most for ranks that have stopped; what still uses the library then is left behind. Errors:
/// Unavailable (no NCCL), TimedOut (ranks that have not come), Device (the library's or the
/// driver's), InvalidArgument.
Result<std::unique_ptr<Transport>> open_nccl_transport(const NcclId& id, std::uint32_t rank,
                                                       std::uint32_t world,
                                                       const NcclOptions& options);

/// The same over a communicator that exists, an ncclComm_t of the same library: all of its ranks
/// call it. It stays its owner's, who uses it for nothing else meanwhile, and who aborts it after
/// `abandon`: until then memory of exchanges under way stays in use. Errors: also InvalidArgument
/// (one of another device).
Result<std::unique_ptr<Transport>> open_nccl_transport(void* communicator,
                                                       const NcclOptions& options);

}  // namespace cinch::rt
