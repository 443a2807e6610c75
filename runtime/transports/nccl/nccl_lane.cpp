#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "runtime/transports/nccl/nccl_lane.h"

namespace cinch::rt {
// State of a thread that opens a communicator in a version whose calls block. The lane may be gone
// when it ends; a communicator that is no longer needed is aborted. While the thread is inside a
// call with the communicator nobody else has it, since an abort frees it.
struct NcclLane::Opening {
  std::mutex mutex;
  std::thread thread;
  bool is_over = false, is_unwanted = false;
  NcclComm comm = nullptr;  // null: the thread is inside a call with it
  Status status = Ok{};
  GpuMemory greetings;  // a byte to each rank, and one from each

  Status run(const NcclCalls& calls, const GpuDevice& device, const NcclUniqueId& id, int world,
             int rank) {
    const GpuDevice::Scope scope(device);
    const GpuDriver& driver = device.driver();
    NcclComm made = nullptr;
    const NcclCode code = calls.init_rank(&made, world, id, rank);
    if (code != kNcclSuccess) {
      return tl::unexpected<Error>(nccl_error(calls, nullptr, code, "opening a communicator"));
    }
    GpuStream stream = nullptr;
    Status status = device.status(driver.stream_create(&stream, kGpuStreamNonBlocking),
                                  "making a stream for NCCL");
    if (status && world > 1 && is_wanted()) status = greet_all(calls, made, stream, world, rank);
    // From here on, aborting the lane stops what the stream waits for.
    if (give(calls, made) && status) {
      status = device.status(driver.stream_synchronize(stream), "connecting ranks");
    }
    if (stream != nullptr) driver.stream_destroy(stream);
    return status;
  }

  bool is_wanted() {
    const std::lock_guard lock(mutex);
    return !is_unwanted;
  }

  /// Returns false if nobody needs it any more.
  bool give(const NcclCalls& calls, NcclComm made) {
    {
      const std::lock_guard lock(mutex);
      if (!is_unwanted) comm = made;
      if (!is_unwanted) return true;
    }
    calls.abort(made);
    return false;
  }

  // The first message between two ranks connects them, and each waits in it for the other, however
  // long that takes. So it is sent here, before anybody else waits for anything.
  Status greet_all(const NcclCalls& calls, NcclComm made, GpuStream stream, int world,
                   int rank) const {
    const auto byte = [this](int index) {
      const GpuAddress address = greetings.address() + static_cast<GpuAddress>(index);
      return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    };
    NcclCode code = calls.group_start();
    for (int peer = 0; peer < world && code == kNcclSuccess; ++peer) {
      if (peer == rank) continue;
      code = calls.send(byte(world), 1, NcclType::Uint8, peer, made, stream);
      if (code != kNcclSuccess) break;
      code = calls.receive(byte(peer), 1, NcclType::Uint8, peer, made, stream);
    }
    const NcclCode ended = calls.group_end();
    if (code == kNcclSuccess) code = ended;
    if (code == kNcclSuccess) return Ok{};
    return tl::unexpected<Error>(nccl_error(calls, nullptr, code, "connecting ranks"));
  }
};
Status NcclLane::make_stream() {
  return device_->status(device_->driver().stream_create(&stream_, kGpuStreamNonBlocking),
                         "making a stream for NCCL");
}

Status NcclLane::status(NcclCode code, const char* what) const {
  if (code == kNcclSuccess || code == kNcclInProgress) return Ok{};
  return tl::unexpected<Error>(nccl_error(calls_, comm_, code, what));
}

Status NcclLane::open(const NcclUniqueId& id, std::uint32_t world, std::uint32_t rank,
                      int most_blocks) {
  CINCH_TRY(make_stream());
  const auto num_ranks = static_cast<int>(world), own = static_cast<int>(rank);
  if (calls_.init_rank_config == nullptr) return open_on_a_thread(id, num_ranks, own);
  constexpr int kFirst = nccl_version(2, 14), kWithBlocks = nccl_version(2, 17);
  NcclConfig config{sizeof config,  kNcclMagic,     kWithBlocks, 0,
                    kNcclUndefined, kNcclUndefined, most_blocks, nullptr};
  if (most_blocks == 0) config.most_blocks = kNcclUndefined;
  if (calls_.version < kWithBlocks) {
    config.version = kFirst;
    config.size = offsetof(NcclConfig, cluster_size) + 4;  // rounded up to a multiple of 8
  }
  return status(calls_.init_rank_config(&comm_, num_ranks, id, own, &config),
                "opening a communicator");
}

Status NcclLane::open_on_a_thread(const NcclUniqueId& id, int world, int rank) {
  auto greetings = TRY(GpuMemory::allocate(device_, static_cast<std::size_t>(world) + 1));
  opening_ = std::make_shared<Opening>();
  opening_->greetings = std::move(greetings);
  opening_->thread =
      std::thread([opening = opening_, device = device_, &calls = calls_, id, world, rank] {
        Status status = opening->run(calls, *device, id, world, rank);
        const std::lock_guard lock(opening->mutex);
        opening->status = std::move(status);
        opening->is_over = true;
      });
  return Ok{};
}

Status NcclLane::lend(NcclComm comm) {
  comm_ = comm;
  is_lent_ = true;
  return make_stream();
}

Result<bool> NcclLane::is_idle() {
  if (opening_ != nullptr && opening_->thread.joinable()) {
    {
      const std::lock_guard lock(opening_->mutex);
      if (!opening_->is_over) return false;
    }
    opening_->thread.join();
    comm_ = opening_->comm;
    if (!opening_->status) return tl::unexpected<Error>(opening_->status.error());
  }
  NcclCode state = kNcclSuccess;
  NcclCode code = calls_.async_error(comm_, &state);
  if (code == kNcclSuccess) code = state;
  if (code == kNcclInProgress) return false;
  const char* const what = is_open_ ? "exchanging" : "opening a communicator";
  CINCH_TRY(status(code, what));
  is_open_ = true;
  return true;
}

void NcclLane::end(NcclEndings& endings, bool is_orderly) {
  if (is_lent_) return;
  if (opening_ != nullptr && opening_->thread.joinable()) {
    const std::lock_guard lock(opening_->mutex);
    opening_->is_unwanted = true;
    comm_ = opening_->comm;
    opening_->thread.detach();
  }
  if (comm_ == nullptr) return;
  endings.begin({&calls_, device_, std::exchange(comm_, nullptr), std::exchange(stream_, nullptr),
                 is_orderly, std::exchange(opening_, nullptr)});
}

NcclLane::~NcclLane() {
  const GpuDevice::Scope scope(*device_);
  if (stream_ != nullptr) device_->driver().stream_destroy(stream_);
}

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
