// The ranks of a program with a `sync`, reached over a transport: its collectives are exchanges,
// each behind one small exchange that says how the ranks' calls go.
#pragma once
#include <chrono>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/collective/transport.h"

namespace cinch::rt {

class TransportRanks : public RankExchange {
 public:
  TransportRanks(Transport& transport, std::chrono::milliseconds timeout)
      : transport_(transport), timeout_(timeout) {}

  Result<RankStatus> exchange(const CollectiveCall& call) override;
  Result<RankStatus> agree(RankStatus own) override;

  /// What the caller of a protocol that failed with `error` is told: where another rank is at
  /// fault, what that one says.
  Error reason_of(const Error& error);

 private:
  Exchange exchange_of(const CollectiveCall& call);

  Transport& transport_;
  std::chrono::milliseconds timeout_;
  std::vector<std::uint8_t> statuses_;
  std::vector<ByteRange> parts_;
  bool has_failed_elsewhere_ = false;
};

}  // namespace cinch::rt
