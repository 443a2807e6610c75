#include "compiler/driver/ranks/rank_transports.h"

#include <fmt/format.h>

#include <cstdlib>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

namespace {

constexpr const char* kPlace = "transport 'nccl'";
// From 2.30 on NCCL can run several ranks on one GPU, if it is told to.
constexpr int kFirstWithSharedGpus = 23000;
constexpr const char* kSharedGpus = "NCCL_MULTI_RANK_GPU_ENABLE";

bool may_share_gpus() {
  const char* const setting = std::getenv(kSharedGpus);
  return setting != nullptr && *setting == '1' &&
         value_or_throw(rt::nccl_library_version()) >= kFirstWithSharedGpus;
}

int count_gpus(const rt::GpuDriver& driver) {
  int count = 0;
  rt::GpuCode code = driver.init(0);
  if (code == rt::kGpuSuccess) code = driver.device_count(&count);
  value_or_throw(rt::gpu_status(driver, code, "counting devices"), kPlace);
  if (count > 0) return count;
  throw CommandError(ExitCode::Unavailable,
                     fmt::format("{}: the CUDA driver lists no device", kPlace));
}

}  // namespace

NcclRanks::NcclRanks(const TransportOptions& options, std::uint32_t ranks) {
  value_or_throw(rt::nccl_library_version(), kPlace);
  driver_ = value_or_throw(rt::open_cuda_driver(), kPlace);
  num_devices_ = count_gpus(*driver_);
  world_ = ranks > 0 ? ranks : static_cast<std::uint32_t>(num_devices_);
  if (world_ > static_cast<std::uint32_t>(num_devices_) && !may_share_gpus()) {
    throw CommandError(
        ExitCode::Unavailable,
        fmt::format("{}: {} ranks want a GPU each, and there {} {}; NCCL 2.30 and newer lets them "
                    "share with {}=1",
                    kPlace, world_, num_devices_ == 1 ? "is" : "are", num_devices_, kSharedGpus));
  }
  id_ = value_or_throw(rt::make_nccl_id(), kPlace);
  options_.is_exact = options.is_exact;
  options_.timeout =
      std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.timeout_seconds));
  options_.neighbours = std::make_shared<rt::NcclNeighbours>();
}

std::unique_ptr<rt::Transport> NcclRanks::open(std::uint32_t rank) const {
  rt::NcclOptions options = options_;
  const int ordinal = static_cast<int>(rank) % num_devices_;
  options.device = value_or_throw(rt::GpuDevice::open(*driver_, ordinal), kPlace);
  return value_or_throw(rt::open_nccl_transport(id_, rank, world_, options), kPlace);
}

}  // namespace cinch::driver
