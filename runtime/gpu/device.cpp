// Bodies of device.h.
#include "runtime/gpu/device.h"

#include <fmt/format.h>

#include <utility>

namespace cinch::rt {
namespace {

constexpr std::size_t kPieceAlignment = 256;

std::size_t aligned(std::size_t size_bytes) {
  return (size_bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

}  // namespace

Result<std::shared_ptr<GpuDevice>> GpuDevice::open(const GpuDriver& driver, int ordinal) {
  std::shared_ptr<GpuDevice> device(new GpuDevice(driver));
  device->ordinal_ = ordinal;
  int major = 0, minor = 0, count = 0;
  char name[256] = {};
  GpuCode code = driver.init(0);
  if (code == kGpuSuccess) code = driver.device_count(&count);
  if (code == kGpuSuccess && ordinal >= count) {
    return fail(ErrorKind::Unavailable,
                count == 0 ? std::string("the CUDA driver lists no device")
                           : fmt::format("no device {}: there are {}", ordinal, count));
  }
  const auto attribute = [&](GpuAttribute which, int& value) {
    if (code != kGpuSuccess) return;
    code = driver.device_attribute(&value, static_cast<int>(which), device->device_);
  };
  if (code == kGpuSuccess) code = driver.device_get(&device->device_, ordinal);
  if (code == kGpuSuccess) code = driver.device_name(name, sizeof name, device->device_);
  attribute(GpuAttribute::ComputeMajor, major);
  attribute(GpuAttribute::ComputeMinor, minor);
  attribute(GpuAttribute::Multiprocessors, device->multiprocessors_);
  attribute(GpuAttribute::MemoryPools, device->has_memory_pools_);
  if (code == kGpuSuccess) code = driver.context_retain(&device->context_, device->device_);
  if (Status status = gpu_status(driver, code, "opening the device"); !status) {
    return tl::unexpected<Error>(status.error());
  }
  device->name_ = name;
  device->arch_ = driver.arch != nullptr ? driver.arch : fmt::format("sm_{}", 10 * major + minor);
  return device;
}

GpuDevice::~GpuDevice() {
  if (context_ == nullptr) return;
  {
    const Scope scope(*this);
    freeing_.close();
  }
  driver_.context_release(device_);
}

GpuDevice::Scope::Scope(const GpuDevice& device)
    : device_(device), is_pushed_(device.driver_.context_push(device.context_) == kGpuSuccess) {}
GpuDevice::Scope::~Scope() {
  GpuContext popped = nullptr;
  if (is_pushed_) device_.driver_.context_pop(&popped);
}

Status GpuDevice::write(GpuAddress to, std::span<const std::uint8_t> bytes,
                        GpuStream stream) const {
  if (bytes.empty()) return Ok{};
  const Scope scope(*this);
  GpuCode code = driver_.copy_to_device(to, bytes.data(), bytes.size(), stream);
  if (code == kGpuSuccess) code = driver_.stream_synchronize(stream);
  return status(code, "copying to the device");
}

Status GpuDevice::read(std::span<std::uint8_t> to, GpuAddress from, GpuStream stream) const {
  if (to.empty()) return Ok{};
  const Scope scope(*this);
  GpuCode code = driver_.copy_to_host(to.data(), from, to.size(), stream);
  if (code == kGpuSuccess) code = driver_.stream_synchronize(stream);
  return status(code, "copying from the device");
}

Status GpuDevice::check_memory(GpuAddress address) const {
  const Scope scope(*this);
  unsigned type = 0, is_managed = 0;
  int ordinal = 0;
  const auto ask = [&](GpuPointerAttribute which, void* value) {
    return driver_.pointer_attribute(value, static_cast<int>(which), address);
  };
  GpuCode code = ask(GpuPointerAttribute::MemoryType, &type);
  if (code == kGpuInvalidValue) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("address {:#x} is no memory of a GPU: it is the host's, or was freed; "
                            "give memory of device {} ({})",
                            address, ordinal_, name_),
                code);
  }
  if (code == kGpuSuccess) code = ask(GpuPointerAttribute::IsManaged, &is_managed);
  if (code == kGpuSuccess) code = ask(GpuPointerAttribute::DeviceOrdinal, &ordinal);
  if (code != kGpuSuccess) return status(code, "asking whose memory it is");
  if (is_managed != 0) return Ok{};
  if (type == kGpuHostMemory) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("address {:#x} is pinned memory of the host; give memory of device {} "
                            "({})",
                            address, ordinal_, name_));
  }
  if (ordinal != ordinal_) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("address {:#x} is memory of device {}; the session is on device {} "
                            "({})",
                            address, ordinal, ordinal_, name_));
  }
  return Ok{};
}

namespace {

std::string allocating(std::size_t size_bytes) {
  return fmt::format("allocating {} bytes on the device", size_bytes);
}

// Allocates; again without what was kept, where there is too little memory.
template <typename Allocate>
GpuCode with_kept_memory(const GpuDevice& device, Allocate allocate) {
  const GpuCode code = allocate();
  return code == kGpuOutOfMemory && device.freeing().retry() ? allocate() : code;
}

}  // namespace

Result<GpuMemory> GpuMemory::allocate(std::shared_ptr<const GpuDevice> device,
                                      std::size_t size_bytes) {
  GpuMemory memory;
  if (size_bytes == 0) return memory;
  const GpuDevice::Scope scope(*device);
  const GpuCode code = with_kept_memory(
      *device, [&] { return device->driver().memory_alloc(&memory.address_, size_bytes); });
  if (Status status = device->status(code, allocating(size_bytes).c_str()); !status) {
    return tl::unexpected<Error>(status.error());
  }
  memory.size_bytes_ = size_bytes;
  memory.device_ = std::move(device);
  return memory;
}

Result<GpuMemory> GpuMemory::allocate_on(std::shared_ptr<const GpuDevice> device,
                                         std::size_t size_bytes, GpuStream stream) {
  if (!device->has_memory_pools()) return allocate(std::move(device), size_bytes);
  GpuMemory memory;
  if (size_bytes == 0) return memory;
  const GpuDevice::Scope scope(*device);
  if (Status status = device->freeing().prepare(); !status) {
    return tl::unexpected<Error>(status.error());
  }
  const GpuCode code = with_kept_memory(*device, [&] {
    return device->driver().memory_alloc_async(&memory.address_, size_bytes, stream);
  });
  if (Status status = device->status(code, allocating(size_bytes).c_str()); !status) {
    return tl::unexpected<Error>(status.error());
  }
  memory.size_bytes_ = size_bytes;
  memory.is_pooled_ = true;
  memory.device_ = std::move(device);
  return memory;
}

GpuMemory::GpuMemory(GpuMemory&& other) noexcept
    : device_(std::move(other.device_)),
      address_(std::exchange(other.address_, 0)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      is_pooled_(std::exchange(other.is_pooled_, false)),
      end_(std::exchange(other.end_, nullptr)) {}

GpuMemory& GpuMemory::operator=(GpuMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = std::move(other.device_);
  address_ = std::exchange(other.address_, 0);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  is_pooled_ = std::exchange(other.is_pooled_, false);
  end_ = std::exchange(other.end_, nullptr);
  return *this;
}

void GpuMemory::release() {
  if (address_ == 0) return;
  const GpuDevice::Scope scope(*device_);
  device_->freeing().free(std::exchange(address_, 0), is_pooled_, end_);
}

PinnedMemory::PinnedMemory(std::shared_ptr<const GpuDevice> device, std::span<std::uint8_t> memory)
    : device_(std::move(device)) {
  const GpuDriver& driver = device_->driver();
  if (memory.empty() || driver.host_register == nullptr) return;
  const GpuDevice::Scope scope(*device_);
  const GpuCode code = driver.host_register(memory.data(), memory.size(), 0);
  if (code == kGpuSuccess) memory_ = memory.data();
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : device_(std::move(other.device_)), memory_(std::exchange(other.memory_, nullptr)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = std::move(other.device_);
  memory_ = std::exchange(other.memory_, nullptr);
  return *this;
}

void PinnedMemory::release() {
  if (memory_ == nullptr) return;
  const GpuDevice::Scope scope(*device_);
  (void)device_->driver().host_unregister(std::exchange(memory_, nullptr));
}

void GpuArena::used_until(GpuEvent end) {
  for (GpuMemory& block : blocks_) block.used_until(end);
}

GpuArena::Piece GpuArena::add(std::size_t size_bytes) {
  sizes_.push_back(size_bytes);
  return sizes_.size() - 1;
}

Status GpuArena::allocate(const std::shared_ptr<const GpuDevice>& device, GpuStream stream) {
  addresses_.assign(sizes_.size(), 0);
  for (const std::size_t size : sizes_) {
    if (__builtin_add_overflow(total_bytes_, aligned(size), &total_bytes_)) {
      return fail(ErrorKind::OutOfMemory, "pieces of memory that no device has");
    }
  }
  if (!device->driver().allocates_apart) {
    auto block = GpuMemory::allocate_on(device, total_bytes_, stream);
    if (!block) return tl::unexpected<Error>(block.error());
    GpuAddress at = block->address();
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (sizes_[i] > 0) addresses_[i] = at;
      at += aligned(sizes_[i]);
    }
    blocks_.push_back(std::move(*block));
    return Ok{};
  }
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    auto block = GpuMemory::allocate_on(device, sizes_[i], stream);
    if (!block) return tl::unexpected<Error>(block.error());
    addresses_[i] = block->address();
    blocks_.push_back(std::move(*block));
  }
  return Ok{};
}

}  // namespace cinch::rt
