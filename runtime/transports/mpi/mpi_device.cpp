// Opens the module that calls MPI.
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/module/shared_object.h"
#include "runtime/transports/mpi/mpi_rank.h"

namespace cinch::rt {
namespace {

constexpr std::uint64_t kLeastStaged = std::uint64_t{64} * 1024;

GpuAddress address_of(std::span<const std::uint8_t> bytes) {
  return reinterpret_cast<GpuAddress>(bytes.data());
}

// Opened globally: components that Open MPI loads take its symbols from the process.
Result<const cinch_mpi_calls*> open_mpi_module() {
  const auto opened = TRY(open_first_library(
      library_paths(CINCH_MPI_LIBRARY, "CINCH_MPI"), RTLD_NOW | RTLD_GLOBAL, CINCH_MPI_ENTRY, "MPI",
      [](void* entry) {
        return reinterpret_cast<cinch_mpi_calls_of_fn>(entry)(CINCH_MPI_ABI_VERSION);
      }));
  return static_cast<const cinch_mpi_calls*>(opened.table);
}

}  // namespace

Result<std::unique_ptr<MpiDevice>> MpiDevice::open(const LentMemory& first) {
  std::unique_ptr<MpiDevice> made(new MpiDevice(first.device, first.turns));
  CINCH_TRY(made->start());
  made->add(first.bytes);
  return made;
}

Status MpiDevice::start() {
  const GpuDevice::Scope scope(*device_);
  GpuCode code = driver().stream_create(&inputs_, kGpuStreamNonBlocking);
  if (code == kGpuSuccess) code = driver().stream_create(&outputs_, kGpuStreamNonBlocking);
  return device_->status(code, "making streams for messages");
}

MpiDevice::~MpiDevice() {
  const GpuDevice::Scope scope(*device_);
  for (GpuStream stream : {inputs_, outputs_}) {
    if (stream == nullptr) continue;
    (void)driver().stream_synchronize(stream);
    (void)driver().stream_destroy(stream);
  }
  for (MpiStaging& staging : stagings_) {
    for (GpuEvent event : {staging.comes_after, staging.is_copied}) {
      if (event != nullptr) (void)driver().event_destroy(event);
    }
    if (staging.is_used) keep_forever(std::move(staging.memory));
  }
}

bool MpiDevice::remove(std::span<std::uint8_t> lent) {
  const auto found = std::ranges::find(lent_, lent.data(), &std::span<std::uint8_t>::data);
  if (found == lent_.end()) return false;
  lent_.erase(found);
  return true;
}

bool MpiDevice::has(std::span<const std::uint8_t> bytes) const {
  const GpuAddress begin = address_of(bytes);
  return bytes.empty() || std::ranges::any_of(lent_, [&](std::span<const std::uint8_t> lent) {
           const GpuAddress first = address_of(lent);
           return begin >= first && begin - first <= lent.size() &&
                  bytes.size() <= lent.size() - (begin - first);
         });
}

Result<MpiStaging*> MpiDevice::make() {
  MpiStaging& made = stagings_.emplace_back();
  GpuCode code = driver().event_create(&made.comes_after, kGpuEventWithoutTiming);
  if (code == kGpuSuccess) {
    code = driver().event_create(&made.is_copied, kGpuEventWithoutTiming);
  }
  CINCH_TRY(device_->status(code, "making events"));
  return &made;
}

// MPI writes without the driver's knowledge, so all of it is marked as written.
Status MpiDevice::grow(MpiStaging& staging, std::uint64_t size_bytes) const {
  staging.memory =
      TRY(GpuMemory::allocate(device_, std::bit_ceil(std::max(size_bytes, kLeastStaged))));
  GpuCode code = driver().fill(staging.memory.address(), 0, staging.memory.size_bytes(), outputs_);
  if (code == kGpuSuccess) code = driver().stream_synchronize(outputs_);
  return device_->status(code, "making room for messages");
}

Result<MpiStaging*> MpiDevice::take(std::uint64_t size_bytes) {
  const auto find = [this](std::uint64_t least) {
    return std::ranges::find_if(stagings_, [least](const MpiStaging& each) {
      return !each.is_used && each.memory.size_bytes() >= least;
    });
  };
  auto found = find(size_bytes);
  if (found == stagings_.end()) found = find(0);
  MpiStaging* const taken = found != stagings_.end() ? &*found : TRY(make());
  if (taken->memory.size_bytes() < size_bytes) {
    CINCH_TRY(grow(*taken, size_bytes));
  }
  taken->is_used = true;
  return taken;
}

Status MpiDevice::begin_input(MpiStaging& staging, GpuStream after) const {
  if (after == nullptr) return Ok{};
  GpuCode code = driver().event_record(staging.comes_after, after);
  if (code == kGpuSuccess) code = driver().stream_wait_event(inputs_, staging.comes_after, 0);
  return device_->status(code, "marking what comes before a message");
}

Status MpiDevice::begin_output(MpiStaging& staging, GpuStream after) const {
  if (after == nullptr) return Ok{};
  return device_->status(driver().stream_wait_event(outputs_, staging.comes_after, 0),
                         "waiting for what comes before a message");
}

Status MpiDevice::end(Way way, MpiStaging& staging) const {
  return device_->status(driver().event_record(staging.is_copied, stream_of(way)),
                         "copying a message");
}

Status MpiDevice::copy(Way way, std::span<std::uint8_t> to,
                       std::span<const std::uint8_t> from) const {
  if (from.empty() || from.data() == to.data()) return Ok{};
  return device_->status(
      driver().copy_on_device(address_of(to), address_of(from), from.size(), stream_of(way)),
      "copying a message");
}

Result<bool> MpiDevice::is_copied(const MpiStaging& staging) const {
  const GpuCode code = driver().event_query(staging.is_copied);
  if (code == kGpuNotReady) return false;
  CINCH_TRY(device_->status(code, "asking for a message"));
  return true;
}

Status MpiDevice::wait_for(GpuStream stream) const {
  return device_->status(driver().stream_synchronize(stream), "waiting for a stream");
}

Status MpiDevice::wait() const {
  Status status = wait_for(inputs_);
  const Status last = wait_for(outputs_);
  return status ? last : status;
}

const Result<const cinch_mpi_calls*>& mpi_library() {
  static const Result<const cinch_mpi_calls*> kCalls = open_mpi_module();
  return kCalls;
}

}  // namespace cinch::rt
