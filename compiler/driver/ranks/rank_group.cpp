#include "compiler/driver/ranks/rank_group.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/process/interrupt.h"
#include "runtime/collective/rank_meeting.h"

namespace cinch::driver {
namespace {

// How close the error is to the cause: errors of ranks that were told of it, or waited in vain,
// come later.
int nearness(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommandError& e) {
    return e.kind() == rt::ErrorKind::Cancelled ? 1 : e.kind() == rt::ErrorKind::TimedOut ? 2 : 3;
  } catch (...) {
    return 3;
  }
}

void rethrow_nearest(const std::vector<std::exception_ptr>& errors) {
  std::exception_ptr found;
  int nearest = 0;
  for (const std::exception_ptr& error : errors) {
    const int near = error ? nearness(error) : 0;
    if (near > nearest) found = error;
    nearest = std::max(nearest, near);
  }
  if (found) std::rethrow_exception(found);
}

}  // namespace

void run_on_rank_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::exception_ptr> errors(world);
  std::vector<std::thread> threads;
  threads.reserve(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rethrow_nearest(errors);
}

namespace {

class CountingExchange : public rt::RankExchange {
 public:
  explicit CountingExchange(rt::RankExchange& ranks) : ranks_(ranks) {}
  rt::Result<rt::RankStatus> exchange(const rt::CollectiveCall& call) override {
    sent_bytes_ += call.input.size();
    return note(ranks_.exchange(call));
  }
  rt::Result<rt::RankStatus> agree(rt::RankStatus own) override {
    is_own_fault_ = own == rt::RankStatus::Failed;
    return note(ranks_.agree(own));
  }
  std::uint64_t sent_bytes() const { return sent_bytes_; }
  // Did the call fail only because of others?
  bool others_failed() const { return others_failed_ && !is_own_fault_; }

 private:
  rt::Result<rt::RankStatus> note(rt::Result<rt::RankStatus> all) {
    others_failed_ = !all || *all == rt::RankStatus::Failed;
    return all;
  }

  rt::RankExchange& ranks_;
  std::uint64_t sent_bytes_ = 0;
  bool others_failed_ = false, is_own_fault_ = false;
};

struct RankOutcome {
  std::exception_ptr error;
  bool is_own_fault = true;
  std::uint64_t sent_bytes = 0;
};

// Names a rank that failed because of others only if no rank failed by itself.
void rethrow_first(const std::vector<RankOutcome>& outcomes) {
  const auto has_failed = [](const RankOutcome& o) { return o.error != nullptr; };
  const auto is_to_blame = [](const RankOutcome& o) { return o.error && o.is_own_fault; };
  auto found = std::ranges::find_if(outcomes, is_to_blame);
  if (found == outcomes.end()) found = std::ranges::find_if(outcomes, has_failed);
  if (found != outcomes.end()) std::rethrow_exception(found->error);
}

}  // namespace

RankGroup::RankGroup(const CodecFactory& factory, Shape shape, std::uint32_t world) {
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    codecs_.push_back(factory.open(shape, rank, world));
  }
}

std::vector<std::vector<float>> RankGroup::sync(std::span<const rt::ConstTensorView> gradients,
                                                std::uint64_t step) {
  const Cancellable scope;
  std::vector<std::vector<float>> updates(codecs_.size());
  std::vector<RankOutcome> outcomes(codecs_.size());
  const auto run = [&](std::uint32_t rank, rt::RankExchange& door) {
    CountingExchange ranks(door);
    try {
      updates[rank].resize(static_cast<std::size_t>(gradients[rank].num_elems));
      codecs_[rank]->sync(gradients[rank], updates[rank], step, ranks);
    } catch (...) {
      outcomes[rank].error = std::current_exception();
      outcomes[rank].is_own_fault = !ranks.others_failed();
    }
    outcomes[rank].sent_bytes = ranks.sent_bytes();
  };
  rt::run_rank_threads(world(), Cancellable::flag(), run);
  sent_bytes_ = 0;
  for (const RankOutcome& outcome : outcomes) {
    sent_bytes_ = std::max(sent_bytes_, outcome.sent_bytes);
  }
  rethrow_first(outcomes);
  return updates;
}

}  // namespace cinch::driver
