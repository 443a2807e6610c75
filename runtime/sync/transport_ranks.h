// The ranks of a program with a `sync`, reached over a transport: its collectives are exchanges,
// each behind one small exchange that says how the ranks' calls go.
#pragma once
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/collective/routes.h"
#include "runtime/collective/transport.h"

namespace cinch::rt {

class TransportRanks : public RankExchange {
 public:
  /// An error with its phase and tensor, as other ranks learn of it.
  using Naming = std::function<Error(const Error&)>;

  TransportRanks(Transport& transport, std::chrono::milliseconds timeout)
      : transport_(transport),
        timeout_(timeout),
        words_(transport.world()),
        parts_(transport.world()) {}

  /// Before the first call of a protocol.
  void begin(Naming naming);
  Result<RankStatus> exchange(const CollectiveCall& call) override;
  Result<RankStatus> agree(RankStatus own) override;

  /// What the caller of a protocol that failed with `error` is told: where another rank is at
  /// fault, what that one says.
  Error reason_of(const Error& error);

 private:
  // What an agreement brings from each rank; words without padding, as they travel.
  struct RankWord {
    std::uint64_t status = 0;  // a RankStatus
    RankOffer offer;           // of the collective that it is at
  };

  Exchange exchange_of(const CollectiveCall& call);
  /// After an agreement that told the offers of all ranks.
  Result<RankStatus> exchange_routed(const CollectiveCall& call);
  /// As exchange_now; the error that it gives has no name yet.
  Status run(const Exchange& exchange, std::chrono::milliseconds timeout);
  Result<RankStatus> agree_within(std::chrono::milliseconds timeout, RankStatus status,
                                  const RankOffer& offer = {});

  Transport& transport_;
  const std::chrono::milliseconds timeout_;
  Naming naming_;
  std::vector<RankWord> words_;  // of the last agreement, by rank
  std::vector<ByteRange> parts_;
  bool has_failed_elsewhere_ = false;
};

}  // namespace cinch::rt
