// The proofs that rank 0 and another rank give each other over a socket: each proves that it knows
// the secret, with a random number that the other has drawn for this connection.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/transports/ucx/keyed_hash.h"

namespace cinch::rt {

struct Introduction {
  Digest hub_nonce{}, rank_nonce{};
  std::uint32_t rank = 0, world = 0;

  HashedText text(std::string_view label) const {
    return HashedText(label).add(hub_nonce).add(rank_nonce).add(rank).add(world);
  }
  Digest proof_of_rank(const std::string& secret) const {
    return keyed_hash(secret, text("cinch: rank"));
  }
  Digest proof_of_hub(const std::string& secret) const {
    return keyed_hash(secret, text("cinch: rank 0"));
  }
  /// The key for later bytes on this connection.
  Digest session_key(const std::string& secret) const {
    return keyed_hash(secret, text("cinch: session"));
  }
};

inline constexpr const char* kWayToHub = "cinch: to rank 0";
inline constexpr const char* kWayFromHub = "cinch: from rank 0";

}  // namespace cinch::rt
