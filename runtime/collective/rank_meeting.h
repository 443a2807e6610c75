// Ranks that are threads of one process: they meet in memory.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/collective/rank_exchange.h"

namespace cinch::rt {

class RankMeeting {
 public:
  /// `cancelled`: if any thread sets it to true, all waits end; outlives this. May be null.
  explicit RankMeeting(std::uint32_t num_ranks, const std::atomic<bool>* cancelled = nullptr);

  /// The interface of rank `rank`, for one thread at a time. Lives as long as this.
  RankExchange& door(std::uint32_t rank);
  /// A rank leaves: ranks that wait for it, now or later, get an error.
  void leave();

 private:
  class Door;
  // What a rank has arrived with; no collective: it agrees.
  struct Arrival {
    const CollectiveCall* call = nullptr;
    RankStatus status = RankStatus::Good;
  };

  Result<RankStatus> meet(std::uint32_t rank, const Arrival& arrival);
  /// Waits until all ranks have arrived, or until one cannot.
  Status wait_for_all();
  Status check_same_call() const;
  /// Gives one rank the result of what all ranks arrived with.
  Status give(const CollectiveCall& call, std::uint32_t rank) const;
  RankStatus worst() const;

  std::vector<std::unique_ptr<RankExchange>> doors_;
  const std::atomic<bool>* cancelled_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Arrival> arrivals_;
  std::size_t num_arrived_ = 0;
  std::size_t num_left_ = 0;
  std::uint64_t round_ = 0;
};

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
