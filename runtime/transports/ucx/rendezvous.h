// How ranks without connections find each other: rounds in which every rank sends some bytes and
// gets those of all ranks. Ranks prove to each other that they know the same secret.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/error.h"
#include "runtime/transports/ucx/keyed_hash.h"

namespace cinch::rt {
/// One rank of a job; the same in all rounds.
struct JobRank {
  std::uint32_t rank = 0, world = 1;
  std::string secret;
  std::chrono::milliseconds timeout{30000};
};

/// The bytes of one rank in a round.
using Part = std::vector<std::uint8_t>;
inline constexpr std::size_t kMostPartBytes = std::size_t{64} * 1024;

class Rendezvous {
 public:
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  virtual ~Rendezvous() = default;

  /// Runs a round; all ranks call it equally often. Returns the parts by rank. After a round that
  /// failed there are no more rounds. Errors: TimedOut (names the ranks that did not arrive),
  /// InvalidArgument (a rank with another secret, two ranks with one number), Cancelled (a rank
  /// left), Io, Device (the caller's store failed).
  virtual Result<std::vector<Part>> gather(std::span<const std::uint8_t> own) = 0;
};

/// A store that the caller provides: what one rank puts under a key, the others can get.
class KeyValueStore {
 public:
  KeyValueStore() = default;
  KeyValueStore(const KeyValueStore&) = delete;
  KeyValueStore& operator=(const KeyValueStore&) = delete;
  virtual ~KeyValueStore() = default;

  virtual Status put(const std::string& key, std::span<const std::uint8_t> value) = 0;
  /// Waits for the key up to a time limit; nothing if it has not arrived.
  virtual Result<std::optional<std::vector<std::uint8_t>>> get(
      const std::string& key, std::chrono::milliseconds timeout) = 0;
};

/// Keys begin with "cinch/" and must be new to the store: an owner who reuses a store adds a new
/// prefix.
std::unique_ptr<Rendezvous> meet_over_store(const JobRank& own,
                                            std::shared_ptr<KeyValueStore> store);

/// Rank 0 listens at `address`, "HOST:PORT", until all ranks have connected, and sends each the
/// parts of all. `interface`: sockets use an address of it; empty: any. Errors: InvalidArgument (no
/// such address, an address of another interface), Io (the port is in use).
Result<std::unique_ptr<Rendezvous>> meet_over_socket(const JobRank& own, const std::string& address,
                                                     const std::string& interface);

/// Text for errors: "rank 2 has not come", "ranks 1, 3 have not come".
std::string not_come(std::span<const std::uint32_t> ranks);

// The data that ranks exchange at their rendezvous before they are connected.

/// One rank's result of a stage of opening, as bytes: its data or its error.
Part part_of(const Result<std::vector<std::uint8_t>>& own);
/// Parses one rank's part. Errors: that of the rank; CorruptPayload.
Result<std::vector<std::uint8_t>> read_part(std::span<const std::uint8_t> part);

/// Shares a result with all ranks in one round. If it failed on some rank, all ranks get the error
/// of the first such rank, with its number. Errors: also those of the rendezvous.
Result<std::vector<std::vector<std::uint8_t>>> share(Rendezvous& rendezvous,
                                                     const Result<std::vector<std::uint8_t>>& own);

/// What a rank first tells about itself.
struct RankCard {
  std::uint32_t version = 0;  // of the messages between ranks
  Digest nonce{};
  std::uint64_t shared_bytes = 0;  // free in the folder of shared memory
  std::string machine;             // equal on ranks that can share memory
};
inline constexpr std::uint32_t kUcxMessagesVersion = 2;

RankCard own_card();
std::vector<std::uint8_t> bytes_of(const RankCard& card);
std::optional<RankCard> read_card(std::span<const std::uint8_t> bytes);

struct Job {
  bool is_one_machine = false;
  std::uint64_t shared_bytes = 0;  // the least of all ranks'
  Digest key{};                    // unique to this job
};
/// Combines the cards of all ranks. Errors: VersionMismatch, CorruptPayload.
Result<Job> job_of(const std::vector<std::vector<std::uint8_t>>& cards, const std::string& secret);

}  // namespace cinch::rt
