// Ranks that are threads of one process: they meet in memory.
#pragma once
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/collective/rank_exchange.h"

namespace cinch::rt {

class RankMeeting {
 public:
  /// `cancelled`: set to true from anywhere, nobody waits any more; outlives this. May be null.
  explicit RankMeeting(std::uint32_t num_ranks, const std::atomic<bool>* cancelled = nullptr);

  /// What rank `rank` calls, from one thread at a time. Lives as long as this.
  RankExchange& door(std::uint32_t rank);
  /// The rank will not come any more: those who wait for it, or will, get an error.
  void leave();

 private:
  class Door;
  // What a rank has come with; no collective: it agrees.
  struct Arrival {
    const CollectiveCall* call = nullptr;
    RankStatus status = RankStatus::Good;
  };

  Result<RankStatus> meet(std::uint32_t rank, const Arrival& arrival);
  /// Waits until all ranks have come, or none can.
  Status wait_for_all();
  Status check_same_call() const;
  /// What all ranks have come with, to one of them.
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

}  // namespace cinch::rt
