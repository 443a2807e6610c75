// Bodies of rank_threads.h.
#include "runtime/collective/rank_threads.h"

#include <thread>
#include <vector>

#include "runtime/collective/rank_meeting.h"

namespace cinch::rt {

void run_rank_threads(std::uint32_t world, const std::atomic<bool>* cancelled,
                      const std::function<void(std::uint32_t, RankExchange&)>& body) {
  RankMeeting meeting(world, cancelled);
  std::vector<std::thread> threads;
  threads.reserve(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      body(rank, meeting.door(rank));
      meeting.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Result<RankStatus> RankTurn::exchange(const CollectiveCall& call) {
  lock_.unlock();
  auto all = ranks_.exchange(call);
  lock_.lock();
  return all;
}

Result<RankStatus> RankTurn::agree(RankStatus own) {
  lock_.unlock();
  auto all = ranks_.agree(own);
  lock_.lock();
  return all;
}

}  // namespace cinch::rt
