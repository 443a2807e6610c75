// Connects a program's `sync` to the other ranks over a transport. Each collective is an exchange;
// a small exchange before it tells how the ranks' calls go.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/collective/routes.h"
#include "runtime/collective/transport.h"

namespace cinch::rt {

class TransportRanks : public RankExchange {
 public:
  /// Adds phase and tensor to an error, for other ranks.
  using Naming = std::function<Error(const Error&)>;

  TransportRanks(Transport& transport, std::chrono::milliseconds timeout)
      : transport_(transport),
        timeout_(timeout),
        words_(transport.world()),
        parts_(transport.world()) {}

  /// Call this before the first call of a protocol, which `what` names for the log.
  void begin(Naming naming, std::function<std::string()> what);
  Result<RankStatus> exchange(const CollectiveCall& call) override;
  Result<RankStatus> agree(RankStatus own) override;

  /// The error for the caller of a protocol that failed with `error`: if another rank is at fault,
  /// that rank's error.
  Error reason_of(const Error& error);

 private:
  // One rank's part of an agreement: words without padding, as they travel.
  struct RankWord {
    std::uint64_t status = 0;  // a RankStatus
    RankOffer offer;           // of the collective that the rank waits at
  };

  Exchange exchange_of(const CollectiveCall& call);
  /// Runs the exchange, after an agreement on the offers of all ranks.
  Result<RankStatus> exchange_routed(const CollectiveCall& call);
  /// As exchange_now, but its errors have no names yet.
  Status run(const Exchange& exchange, std::chrono::milliseconds timeout);
  Result<RankStatus> agree_within(std::chrono::milliseconds timeout, RankStatus status,
                                  const RankOffer& offer = {});

  Transport& transport_;
  const std::chrono::milliseconds timeout_;
  Naming naming_;
  std::function<std::string()> what_;
  std::vector<RankWord> words_;  // of the last agreement, by rank
  std::vector<ByteRange> parts_;
  bool has_failed_elsewhere_ = false;
};

}  // namespace cinch::rt
