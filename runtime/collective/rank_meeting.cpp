// Each exchange waits twice: until all ranks have arrived with their arrays, and until all have
// taken what they need from them.
#include "runtime/collective/rank_meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/collective/join_ranks.h"

namespace cinch::rt {
namespace {

// How often a waiting rank checks whether it was cancelled.
constexpr std::chrono::milliseconds kLook{20};

bool are_same(const CollectiveCall& a, const CollectiveCall& b) {
  const bool is_as_long = is_counted(a.collective.kind) || a.input.size() == b.input.size();
  return a.collective == b.collective && a.dtype == b.dtype && a.groups == b.groups && is_as_long;
}

}  // namespace

class RankMeeting::Door : public RankExchange {
 public:
  Door(RankMeeting& meeting, std::uint32_t rank) : meeting_(meeting), rank_(rank) {}
  Result<RankStatus> exchange(const CollectiveCall& call) override {
    return meeting_.meet(rank_, {&call, RankStatus::Good});
  }
  Result<RankStatus> agree(RankStatus own) override { return meeting_.meet(rank_, {nullptr, own}); }

 private:
  RankMeeting& meeting_;
  std::uint32_t rank_;
};

RankMeeting::RankMeeting(std::uint32_t num_ranks, const std::atomic<bool>* cancelled)
    : cancelled_(cancelled), arrivals_(num_ranks) {
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    doors_.push_back(std::make_unique<Door>(*this, rank));
  }
}

RankExchange& RankMeeting::door(std::uint32_t rank) {
  return *doors_.at(rank);
}

void RankMeeting::leave() {
  const std::lock_guard lock(mutex_);
  ++num_left_;
  changed_.notify_all();
}

Status RankMeeting::wait_for_all() {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = round_;
  if (++num_arrived_ == doors_.size()) {
    num_arrived_ = 0;
    ++round_;
    changed_.notify_all();
    return Ok{};
  }
  for (;;) {
    if (round_ != round) return Ok{};
    if (num_left_ > 0) {
      return fail(ErrorKind::Cancelled, "another rank has left the synchronisation");
    }
    if (cancelled_ != nullptr && *cancelled_) return fail(ErrorKind::Cancelled, "cancelled");
    changed_.wait_for(lock, kLook);
  }
}

RankStatus RankMeeting::worst() const {
  RankStatus found = RankStatus::Good;
  for (const Arrival& arrival : arrivals_) found = std::max(found, arrival.status);
  return found;
}

Status RankMeeting::check_same_call() const {
  const CollectiveCall* first = arrivals_.front().call;
  for (std::size_t rank = 1; rank < arrivals_.size(); ++rank) {
    const CollectiveCall* other = arrivals_[rank].call;
    const bool is_same =
        first == nullptr || other == nullptr ? first == other : are_same(*first, *other);
    if (!is_same) {
      return fail(ErrorKind::Internal,
                  fmt::format("ranks 0 and {} are at different collectives", rank));
    }
  }
  return Ok{};
}

Status RankMeeting::give(const CollectiveCall& call, std::uint32_t rank) const {
  std::vector<std::span<const std::uint8_t>> inputs;
  std::vector<RankOffer> offers;
  for (std::uint32_t other = 0; other < arrivals_.size(); ++other) {
    if (!call.groups.are_together(rank, other)) continue;
    inputs.push_back(arrivals_[other].call->input);
    offers.push_back(offer_of(*arrivals_[other].call));
  }
  return is_routed(call.collective.kind) ? give_routed(call, inputs, offers, rank)
                                         : give_part(call, inputs, call.groups.number(rank));
}

Result<RankStatus> RankMeeting::meet(std::uint32_t rank, const Arrival& arrival) {
  // Written before all have arrived and read after that; the wait in between orders both.
  arrivals_[rank] = arrival;
  CINCH_TRY(wait_for_all());
  const RankStatus status = worst();
  Status given = status == RankStatus::Good ? check_same_call() : Status(Ok{});
  if (given && status == RankStatus::Good && arrival.call != nullptr) {
    given = give(*arrival.call, rank);
  }
  CINCH_TRY(wait_for_all());
  CINCH_TRY(given);
  return status;
}

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
