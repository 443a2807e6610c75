// Bodies of tables.h.
#include "runtime/gpu/tables.h"

#include <algorithm>
#include <cstring>

namespace cinch::rt {
namespace {

// Copies from pageable memory of at most this length are staged by the driver before the call
// returns ("API synchronization behavior" of the CUDA driver): the host may change its bytes then,
// and nothing waits for the device.
constexpr std::size_t kStagedBytes = std::size_t{64} * 1024;

}  // namespace

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
