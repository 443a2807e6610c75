// Bodies of nccl_lane.h.
#include "runtime/collective/nccl/nccl_lane.h"

#include <mutex>
#include <thread>
#include <utility>

namespace cinch::rt {

// What a thread works on that opens a communicator in a version that blocks. The lane may be gone
// when it ends; what nobody wants any more is aborted.
struct NcclLane::Opening {
  std::mutex mutex;
  std::thread thread;
  bool is_over = false, is_unwanted = false;
  NcclComm comm = nullptr;
  Status status = Ok{};
  GpuMemory greetings;  // a byte to all, and one from each

  Status run(const NcclCalls& calls, const GpuDevice& device, const NcclUniqueId& id, int world,
             int rank);
  Status greet_all(const NcclCalls& calls, const GpuDevice& device, int world, int rank) const;
};

// Two ranks are connected by the first message between them, and wait in it for each other, however
// long that takes: so it is sent here, before anybody else waits for anything.
Status NcclLane::Opening::greet_all(const NcclCalls& calls, const GpuDevice& device, int world,
                                    int rank) const {
  const auto byte = [this](int index) {
    const GpuAddress address = greetings.address() + static_cast<GpuAddress>(index);
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  };
  GpuStream stream = nullptr;
  GpuCode made = device.driver().stream_create(&stream, kGpuStreamNonBlocking);
  if (made != kGpuSuccess) return device.status(made, "making a stream for NCCL");
  NcclCode code = calls.group_start();
  for (int peer = 0; peer < world && code == kNcclSuccess; ++peer) {
    if (peer == rank) continue;
    code = calls.send(byte(world), 1, NcclType::Uint8, peer, comm, stream);
    if (code != kNcclSuccess) break;
    code = calls.receive(byte(peer), 1, NcclType::Uint8, peer, comm, stream);
  }
  const NcclCode ended = calls.group_end();
  if (code == kNcclSuccess) code = ended;
  made = device.driver().stream_synchronize(stream);
  device.driver().stream_destroy(stream);
  if (code != kNcclSuccess) {
    return tl::unexpected<Error>(nccl_error(calls, nullptr, code, "connecting ranks"));
  }
  return device.status(made, "connecting ranks");
}

Status NcclLane::Opening::run(const NcclCalls& calls, const GpuDevice& device,
                              const NcclUniqueId& id, int world, int rank) {
  const GpuDevice::Scope scope(device);
  NcclComm made = nullptr;
  const NcclCode code = calls.init_rank(&made, world, id, rank);
  if (code != kNcclSuccess) {
    return tl::unexpected<Error>(nccl_error(calls, nullptr, code, "opening a communicator"));
  }
  {
    const std::lock_guard lock(mutex);
    if (is_unwanted) {
      calls.abort(made);
      return Ok{};
    }
    comm = made;  // abort stops the rest
  }
  return world == 1 ? Status(Ok{}) : greet_all(calls, device, world, rank);
}

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
  if (Status made = make_stream(); !made) return made;
  const auto num_ranks = static_cast<int>(world), own = static_cast<int>(rank);
  if (calls_.init_rank_config == nullptr) return open_on_a_thread(id, num_ranks, own);
  constexpr int kFirst = nccl_version(2, 14), kWithBlocks = nccl_version(2, 17);
  NcclConfig config{sizeof config,  kNcclMagic,     kWithBlocks, 0,
                    kNcclUndefined, kNcclUndefined, most_blocks, nullptr};
  if (most_blocks == 0) config.most_blocks = kNcclUndefined;
  if (calls_.version < kWithBlocks) {
    config.version = kFirst;
    config.size = offsetof(NcclConfig, cluster_size) + 4;  // to the next multiple of 8
  }
  return status(calls_.init_rank_config(&comm_, num_ranks, id, own, &config),
                "opening a communicator");
}

Status NcclLane::open_on_a_thread(const NcclUniqueId& id, int world, int rank) {
  auto greetings = GpuMemory::allocate(device_, static_cast<std::size_t>(world) + 1);
  if (!greetings) return tl::unexpected<Error>(greetings.error());
  opening_ = std::make_shared<Opening>();
  opening_->greetings = std::move(*greetings);
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
  if (Status found = status(code, what); !found) return tl::unexpected<Error>(found.error());
  is_open_ = true;
  return true;
}

void NcclLane::abort() {
  if (opening_ != nullptr && opening_->thread.joinable()) {
    const std::lock_guard lock(opening_->mutex);
    opening_->is_unwanted = true;
    comm_ = opening_->comm;
    opening_->thread.detach();
  }
  if (is_lent_) return;
  if (comm_ != nullptr) calls_.abort(std::exchange(comm_, nullptr));
  if (stream_ != nullptr) device_->driver().stream_synchronize(stream_);
}

void NcclLane::close(std::chrono::steady_clock::time_point end) {
  if (is_lent_ || comm_ == nullptr) return abort();
  if (calls_.init_rank_config != nullptr && calls_.finalize != nullptr) {
    bool has_ended = status(calls_.finalize(comm_), "closing a communicator").has_value();
    for (Result<bool> idle = false; has_ended && !*idle;) {
      idle = is_idle();
      has_ended = idle && (*idle || std::chrono::steady_clock::now() < end);
      if (has_ended && !*idle) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    if (!has_ended) return abort();
  }
  calls_.destroy(std::exchange(comm_, nullptr));
}

NcclLane::~NcclLane() {
  const GpuDevice::Scope scope(*device_);
  if (comm_ != nullptr || opening_ != nullptr) abort();
  if (stream_ != nullptr) device_->driver().stream_destroy(stream_);
}

}  // namespace cinch::rt
