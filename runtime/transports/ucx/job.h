// The data that ranks exchange at their rendezvous before they are connected.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transports/ucx/keyed_hash.h"
#include "runtime/transports/ucx/rendezvous.h"

namespace cinch::rt {

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
