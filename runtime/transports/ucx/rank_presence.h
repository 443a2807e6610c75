// Tells when the process of another rank on this machine has ended. UCX asks whether there is such
// a process, and over shared memory it takes one that has ended, but that nobody has waited for
// yet, for one that lives. The system takes a process's locks back when it ends.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transports/ucx/keyed_hash.h"
#include "runtime/transports/ucx/sockets.h"

namespace cinch::rt {

class RankPresence {
 public:
  /// Null if ranks have no common folder for it; a rank that ends is then found as UCX finds it.
  /// `job_key`: known to all ranks, and to nobody else.
  static std::unique_ptr<RankPresence> open(const Digest& job_key, std::uint32_t rank,
                                            std::uint32_t world);
  ~RankPresence() { forget_name(); }
  RankPresence(const RankPresence&) = delete;
  RankPresence& operator=(const RankPresence&) = delete;

  /// Has the rank been seen here, and has its process ended since? Ranks of other machines are
  /// never seen.
  bool has_ended(std::uint32_t rank);
  /// The file needs no name when all ranks have opened it.
  void forget_name();

 private:
  RankPresence(std::string name, OwnedFile file, std::uint32_t world)
      : name_(std::move(name)), file_(std::move(file)), was_seen_(world) {}

  std::string name_;
  OwnedFile file_;  // each rank that lives holds a lock on the byte of its number
  std::vector<bool> was_seen_;
};

}  // namespace cinch::rt
