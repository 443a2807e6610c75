// The tables of a session on a GPU (gpu_abi.h): one entry per tensor and kind of call. The host
// keeps the bytes; the device has the copy that kernels read. Part of GpuSession.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::rt {

/// The entry of one tensor on the host.
class GpuTensorEntry {
 public:
  GpuTensorEntry(std::uint8_t* bytes, const GpuTensorLayout& layout)
      : bytes_(bytes), layout_(layout) {}

  void set_buffer(std::size_t index, GpuAddress address) {
    put(layout_.buffers + 8 * index, address);
  }
  void set_bytes(std::size_t index, std::uint64_t value) { put(layout_.bytes + 8 * index, value); }
  void set_size(std::size_t index, std::uint64_t bits) { put(layout_.sizes + 8 * index, bits); }
  void set_groups(std::size_t index, std::uint64_t value) {
    put(layout_.groups + 8 * index, value);
  }
  void set_param(std::size_t index, std::uint64_t bits) { put(layout_.params + 8 * index, bits); }
  void set_header(std::size_t index, std::uint64_t word) { put(layout_.header + 8 * index, word); }
  void set_payload(GpuAddress address, std::uint64_t size_bytes) {
    put(layout_.payload, address);
    put(layout_.payload + 8, size_bytes);
  }
  void set_tensor(GpuAddress address) { put(layout_.tensor, address); }
  void set_draw(std::size_t index, std::uint32_t word) { put(layout_.draw + 4 * index, word); }

 private:
  template <typename T>
  void put(std::size_t offset, T value);
  std::uint8_t* bytes_;
  const GpuTensorLayout& layout_;
};

class GpuTable {
 public:
  GpuTable(const GpuTensorLayout& layout, std::size_t num_tensors)
      : layout_(layout), bytes_(layout.size_bytes * num_tensors), sent_(bytes_.size()) {}

  GpuTensorEntry entry(std::size_t tensor) {
    return {bytes_.data() + tensor * layout_.size_bytes, layout_};
  }
  std::size_t size_bytes() const { return bytes_.size(); }
  void place(GpuAddress address) { address_ = address; }
  GpuAddress address() const { return address_; }

  /// Do the device's bytes differ from the host's?
  bool is_stale() const { return !is_sent_ || bytes_ != sent_; }
  /// Enqueues a copy of the bytes that changed. Errors: Device.
  Status send(const GpuDevice& device, GpuStream stream);

 private:
  GpuTensorLayout layout_;
  std::vector<std::uint8_t> bytes_, sent_;  // the bytes on the host; those on the device
  GpuAddress address_ = 0;
  bool is_sent_ = false;
};

}  // namespace cinch::rt
