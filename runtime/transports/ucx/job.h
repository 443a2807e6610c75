// What ranks tell each other at their rendezvous before they are connected.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transports/ucx/keyed_hash.h"
#include "runtime/transports/ucx/rendezvous.h"

namespace cinch::rt {

/// One rank's answer to how a stage of the opening went: its bytes, or its error.
Part part_of(const Result<std::vector<std::uint8_t>>& own);
/// Of one rank. Errors: that of the rank; CorruptPayload.
Result<std::vector<std::uint8_t>> read_part(std::span<const std::uint8_t> part);

/// Takes a round. If it failed on some rank all ranks get the error of the first one, with its
/// number. Errors: also those of the rendezvous.
Result<std::vector<std::vector<std::uint8_t>>> share(Rendezvous& rendezvous,
                                                     const Result<std::vector<std::uint8_t>>& own);

/// What a rank says of itself first.
struct RankCard {
  std::uint32_t version = 0;  // of the messages between ranks
  Digest nonce{};
  std::string machine;  // the same where ranks can share memory
};
inline constexpr std::uint32_t kUcxMessagesVersion = 1;

RankCard own_card();
std::vector<std::uint8_t> bytes_of(const RankCard& card);
std::optional<RankCard> read_card(std::span<const std::uint8_t> bytes);

struct Job {
  bool is_one_machine = false;
  Digest key{};  // of this job alone
};
/// From what all ranks have said of themselves. Errors: VersionMismatch, CorruptPayload.
Result<Job> job_of(const std::vector<std::vector<std::uint8_t>>& cards, const std::string& secret);

}  // namespace cinch::rt
