// NVIDIA's driver behind driver.h.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/core/library_symbols.h"
#include "runtime/gpu/driver.h"
#include "runtime/gpu/plan.h"

namespace cinch::rt {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

Result<GpuDriver> open_driver() {
  void* library = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorKind::Unavailable,
                fmt::format("no CUDA driver: {}", reason != nullptr ? reason : kDriver));
  }
  GpuDriver driver{};
  LibrarySymbols symbols(library);
#define CINCH_GPU_CALL(member, symbol, parameters) symbols.find(driver.member, symbol);
#include "runtime/gpu/driver.def"
#undef CINCH_GPU_CALL
  if (symbols.missing() != nullptr) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{} has no {}: a driver of CUDA 12 or newer is needed", kDriver,
                            symbols.missing()));
  }
  return driver;
}

ErrorKind kind_of(GpuCode code) {
  switch (code) {
    case kGpuOutOfMemory:
      return ErrorKind::OutOfMemory;
    case kGpuNoDevice:
    case kGpuNoBinary:
    case kGpuUnsupportedPtx:
      return ErrorKind::Unavailable;
    case kGpuInvalidValue:
    case kGpuInvalidHandle:
      return ErrorKind::InvalidArgument;
    default:
      return ErrorKind::Device;
  }
}

const char* advice(GpuCode code) {
  switch (code) {
    case kGpuOutOfMemory:
      return "; free memory of the device, or use fewer or smaller tensors";
    case kGpuNoDevice:
      return "; the driver lists no device (see nvidia-smi, CUDA_VISIBLE_DEVICES)";
    case kGpuNoBinary:
      return "; the code was compiled for another architecture: compile for this device";
    case kGpuUnsupportedPtx:
      return "; the driver is older than the NVRTC that compiled this: update the driver, or set "
             "CINCH_NVRTC to an older NVRTC";
    case kGpuInvalidHandle:
      return "; was the stream destroyed?";
    case kGpuIllegalAddress:
    case kGpuLaunchFailed:
      return "; the device's context can no longer be used: end the process";
    default:
      return "";
  }
}

// Copies from pageable memory of at most this length are staged by the driver before the call
// returns ("API synchronization behavior" of the CUDA driver): the host may change its bytes then,
// and nothing waits for the device.
constexpr std::size_t kStagedBytes = std::size_t{64} * 1024;

}  // namespace

Result<const GpuDriver*> open_cuda_driver() {
  static const Result<GpuDriver> kOpened = open_driver();
  CINCH_TRY(kOpened);
  return &*kOpened;
}

Status gpu_status(const GpuDriver& driver, GpuCode code, const char* what) {
  if (code == kGpuSuccess) return Ok{};
  const char* name = nullptr;
  const char* text = nullptr;
  driver.error_name(code, &name);
  driver.error_text(code, &text);
  return fail(kind_of(code),
              fmt::format("{}: {} ({}){}", what, name != nullptr ? name : "unknown error",
                          text != nullptr ? text : std::to_string(code), advice(code)),
              code);
}

template <typename T>
void GpuTensorEntry::put(std::size_t offset, T value) {
  std::memcpy(bytes_ + offset, &value, sizeof value);
}
template void GpuTensorEntry::put(std::size_t, std::uint64_t);
template void GpuTensorEntry::put(std::size_t, std::uint32_t);

Status GpuTable::send(const GpuDevice& device, GpuStream stream) {
  std::size_t begin = 0, end = bytes_.size();
  if (is_sent_) {
    const auto differs = std::mismatch(bytes_.begin(), bytes_.end(), sent_.begin());
    begin = static_cast<std::size_t>(differs.first - bytes_.begin());
    while (end > begin && bytes_[end - 1] == sent_[end - 1]) --end;
  }
  is_sent_ = false;  // until all of it has been sent
  for (; begin < end; begin += kStagedBytes) {
    const std::size_t size = std::min(kStagedBytes, end - begin);
    const GpuCode code =
        device.driver().copy_to_device(address_ + begin, bytes_.data() + begin, size, stream);
    CINCH_TRY(device.status(code, "sending a call's arguments"));
  }
  sent_ = bytes_;
  is_sent_ = true;
  return Ok{};
}

}  // namespace cinch::rt
