// How ranks that have no connection yet find each other: rounds in which every rank gives some
// bytes and gets those of all ranks. Ranks prove to each other that they have the same secret.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// One rank of a job, as all rounds know it.
struct JobRank {
  std::uint32_t rank = 0, world = 1;
  std::string secret;
  std::chrono::milliseconds timeout{30000};
};

/// What one rank gives in a round.
using Part = std::vector<std::uint8_t>;
inline constexpr std::size_t kMostPartBytes = std::size_t{64} * 1024;

class Rendezvous {
 public:
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  virtual ~Rendezvous() = default;

  /// All ranks call it as often as the others; the parts by rank. No round follows one that has
  /// failed. Errors: TimedOut (names the ranks that have not come), InvalidArgument (a rank with
  /// another secret, two ranks with one number), Cancelled (a rank has gone), Io, Device (the
  /// lent store's).
  virtual Result<std::vector<Part>> gather(std::span<const std::uint8_t> own) = 0;
};

/// A store that the caller lends: what one rank puts under a key the others get.
class KeyValueStore {
 public:
  KeyValueStore() = default;
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;
  virtual ~KeyValueStore() = default;

  virtual Status put(const std::string& key, std::span<const std::uint8_t> value) = 0;
  /// Waits for the key, at most so long; nothing where it has not come.
  virtual Result<std::optional<std::vector<std::uint8_t>>> get(
      const std::string& key, std::chrono::milliseconds timeout) = 0;
};

/// Keys begin with "cinch/", and are new to the store: a store that is used again gets another
/// prefix from its owner.
std::unique_ptr<Rendezvous> meet_over_store(const JobRank& own,
                                            std::shared_ptr<KeyValueStore> store);

/// Rank 0 listens at `address`, "HOST:PORT", until all ranks have come, and tells them of each
/// other; the others connect to it. `interface`: sockets have an address of it; empty: any.
/// Errors: InvalidArgument (no such address, an address of another interface), Io (the port is in
/// use).
Result<std::unique_ptr<Rendezvous>> meet_over_socket(const JobRank& own, const std::string& address,
                                                     const std::string& interface);

/// "rank 2 has not come", "ranks 1, 3 have not come".
std::string not_come(std::span<const std::uint32_t> ranks);

}  // namespace cinch::rt
