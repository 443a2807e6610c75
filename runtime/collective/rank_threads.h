// Ranks as threads of this process.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

#include "runtime/collective/rank_exchange.h"

namespace cinch::rt {

/// Calls body(rank, its exchange) for all ranks at once, each on a thread of its own, and returns
/// when all have ended. Nobody waits for a rank whose body has ended. `cancelled`: as for
/// RankMeeting. The body must not throw.
void run_rank_threads(std::uint32_t world, const std::atomic<bool>* cancelled,
                      const std::function<void(std::uint32_t, RankExchange&)>& body);

/// A turn for ranks that share something that only one of them may use at a time (an emulated
/// device). It lasts as long as this lives, except while the rank waits for the others.
class RankTurn : public RankExchange {
 public:
  RankTurn(RankExchange& ranks, std::mutex& shared) : ranks_(ranks), lock_(shared) {}
  Result<RankStatus> exchange(const CollectiveCall& call) override;
  Result<RankStatus> agree(RankStatus own) override;

 private:
  RankExchange& ranks_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace cinch::rt
