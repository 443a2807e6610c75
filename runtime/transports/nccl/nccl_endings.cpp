// Bodies of nccl_endings.h.
#include "runtime/transports/nccl/nccl_endings.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cinch::rt {
namespace {

using Clock = std::chrono::steady_clock;

// For each of the two steps: finalize and destroy.
constexpr std::chrono::milliseconds kStepPatience{2000};

// The peers finalize theirs at the same time.
bool is_finalized(const NcclEnding& ending) {
  const NcclCalls& calls = *ending.calls;
  if (calls.init_rank_config == nullptr || calls.finalize == nullptr) return true;
  const auto until = Clock::now() + kStepPatience;
  NcclCode code = calls.finalize(ending.comm);
  while (code == kNcclInProgress && Clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    NcclCode state = kNcclSuccess;
    code = calls.async_error(ending.comm, &state);
    if (code == kNcclSuccess) code = state;
  }
  return code == kNcclSuccess;
}

void run(const NcclEnding& ending) {
  const GpuDevice::Scope scope(*ending.device);
  const bool is_closed = ending.is_orderly && is_finalized(ending);
  (is_closed ? ending.calls->destroy : ending.calls->abort)(ending.comm);
  const GpuDriver& driver = ending.device->driver();
  driver.stream_synchronize(ending.stream);
  driver.stream_destroy(ending.stream);
}

}  // namespace

struct NcclEndings::State {
  std::mutex mutex;
  std::condition_variable moved;
  std::vector<bool> are_over;  // by thread
  std::vector<std::shared_ptr<void>> kept;
};

NcclEndings::NcclEndings() : state_(std::make_shared<State>()) {}

void NcclEndings::begin(NcclEnding ending) {
  until_ = std::max(until_, Clock::now() + (ending.is_orderly ? 2 : 1) * kStepPatience);
  const std::size_t own = threads_.size();
  {
    const std::lock_guard lock(state_->mutex);
    state_->are_over.push_back(false);
  }
  threads_.emplace_back([state = state_, own, ending = std::move(ending)]() mutable {
    run(ending);
    ending = {};
    const std::lock_guard lock(state->mutex);
    state->are_over[own] = true;
    state->moved.notify_all();
  });
}

bool NcclEndings::wait() {
  std::unique_lock lock(state_->mutex);
  const auto have_ended = [this] {
    return std::ranges::all_of(state_->are_over, [](bool is_over) { return is_over; });
  };
  const bool are_over = state_->moved.wait_until(lock, until_, have_ended);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (!threads_[i].joinable()) continue;
    state_->are_over[i] ? threads_[i].join() : threads_[i].detach();
  }
  return are_over;
}

void NcclEndings::keep(std::shared_ptr<void> memory) {
  const std::lock_guard lock(state_->mutex);
  state_->kept.push_back(std::move(memory));
}

}  // namespace cinch::rt
