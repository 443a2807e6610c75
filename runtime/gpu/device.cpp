#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/gpu/device.h"

namespace cinch::rt {
void GpuFreeing::close() {
  retry();
  if (stream_ != nullptr) (void)driver_.stream_destroy(stream_);
}

Status GpuFreeing::prepare() {
  const std::lock_guard lock(mutex_);
  if (stream_ != nullptr) return Ok{};
  const GpuCode code = driver_.stream_create(&stream_, kGpuStreamNonBlocking);
  return gpu_status(driver_, code, "making a stream");
}

void GpuFreeing::free(GpuAddress address, bool is_pooled, GpuEvent end) {
  const Kept freed{.address = address, .is_pooled = is_pooled};
  {
    const std::lock_guard lock(mutex_);
    const BesideCaptures beside(driver_);
    // For memory that is not pooled the driver itself waits.
    const bool is_unused = !is_pooled || is_behind(end);
    if (!is_unused || !give_back(freed)) kept_.push_back(freed);
  }
  return_unused();
}

void GpuFreeing::give_back(SourcedMemory lent, GpuEvent end) {
  {
    const std::lock_guard lock(mutex_);
    const BesideCaptures beside(driver_);
    (is_behind(end) ? unused_ : lent_).push_back(std::move(lent));
  }
  return_unused();
}

void GpuFreeing::unload(GpuModuleHandle module) {
  {
    const std::lock_guard lock(mutex_);
    const BesideCaptures beside(driver_);
    if (keeps_any() && is_context_idle()) give_kept_back();
    const Kept freed{.module = module};
    if (keeps_any() || !give_back(freed)) kept_.push_back(freed);
  }
  return_unused();
}

bool GpuFreeing::retry() {
  {
    const std::lock_guard lock(mutex_);
    if (!keeps_any()) return false;
    const BesideCaptures beside(driver_);
    if (is_context_idle()) give_kept_back();
  }
  return_unused();
  return true;
}

void GpuFreeing::return_unused() {
  std::vector<SourcedMemory> unused;
  {
    const std::lock_guard lock(mutex_);
    unused.swap(unused_);
  }
  if (unused.empty()) return;
  const BesideCaptures beside(driver_);
  for (const SourcedMemory& lent : unused) {
    lent.source.release(lent.source.context.get(), lent.memory, lent.size_bytes, lent.use);
  }
}

bool GpuFreeing::is_behind(GpuEvent end) {
  if (end != nullptr && driver_.event_synchronize(end) == kGpuSuccess) return true;
  const bool is_idle = is_context_idle();
  if (is_idle) give_kept_back();
  return is_idle;
}

bool GpuFreeing::is_context_idle() const {
  return driver_.context_synchronize() == kGpuSuccess;
}

bool GpuFreeing::give_back(const Kept& kept) const {
  if (kept.module != nullptr) return driver_.module_unload(kept.module) == kGpuSuccess;
  const GpuCode code = kept.is_pooled ? driver_.memory_free_async(kept.address, stream_)
                                      : driver_.memory_free(kept.address);
  return code == kGpuSuccess;
}

void GpuFreeing::give_kept_back() {
  std::erase_if(kept_, [this](const Kept& kept) { return give_back(kept); });
  std::ranges::move(lent_, std::back_inserter(unused_));
  lent_.clear();
}

namespace {

constexpr std::size_t kPieceAlignment = 256;

std::size_t aligned(std::size_t size_bytes) {
  return (size_bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
}

// For memory that a source provided.
Status check_lent(const GpuDevice& device, GpuAddress address) {
  if (address % kPieceAlignment != 0) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("the allocator gave address {:#x}, which is not a multiple of {}",
                            address, kPieceAlignment));
  }
  Status status = device.check_memory(address);
  if (!status) status.error().message = "the allocator's memory: " + status.error().message;
  return status;
}

std::string allocating(std::size_t size_bytes) {
  return fmt::format("allocating {} bytes on the device", size_bytes);
}

// Allocates. If memory is short, frees what was kept and tries again.
template <typename Allocate>
GpuCode with_kept_memory(const GpuDevice& device, Allocate allocate) {
  const GpuCode code = allocate();
  return code == kGpuOutOfMemory && device.freeing().retry() ? allocate() : code;
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
  CINCH_TRY(gpu_status(driver, code, "opening the device"));
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
                fmt::format("address {:#x} is not memory of a GPU: it is the host's, or was freed; "
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

Result<GpuMemory> GpuMemory::allocate(std::shared_ptr<const GpuDevice> device,
                                      std::size_t size_bytes) {
  GpuMemory memory;
  if (size_bytes == 0) return memory;
  const GpuDevice::Scope scope(*device);
  const GpuCode code = with_kept_memory(
      *device, [&] { return device->driver().memory_alloc(&memory.held_.address, size_bytes); });
  CINCH_TRY(device->status(code, allocating(size_bytes).c_str()));
  memory.held_.size_bytes = size_bytes;
  memory.held_.device = std::move(device);
  return memory;
}

Result<GpuMemory> GpuMemory::allocate_on(std::shared_ptr<const GpuDevice> device,
                                         std::size_t size_bytes, GpuStream stream) {
  if (!device->has_memory_pools()) return allocate(std::move(device), size_bytes);
  GpuMemory memory;
  if (size_bytes == 0) return memory;
  const GpuDevice::Scope scope(*device);
  CINCH_TRY(device->freeing().prepare());
  const GpuCode code = with_kept_memory(*device, [&] {
    return device->driver().memory_alloc_async(&memory.held_.address, size_bytes, stream);
  });
  CINCH_TRY(device->status(code, allocating(size_bytes).c_str()));
  memory.held_.size_bytes = size_bytes;
  memory.held_.is_pooled = true;
  memory.held_.device = std::move(device);
  return memory;
}

Result<GpuMemory> GpuMemory::allocate_from(const MemorySource& source, MemoryUse use,
                                           std::shared_ptr<const GpuDevice> device,
                                           std::size_t size_bytes) {
  GpuMemory memory;
  if (size_bytes == 0) return memory;
  const GpuDevice::Scope scope(*device);
  void* given = nullptr;
  const GpuCode code = with_kept_memory(*device, [&] {
    given = source.allocate(source.context.get(), size_bytes, kPieceAlignment, use);
    return given != nullptr ? kGpuSuccess : kGpuOutOfMemory;
  });
  if (code != kGpuSuccess) {
    return fail(ErrorKind::OutOfMemory,
                fmt::format("the allocator has no memory for {} bytes on the device", size_bytes));
  }
  const auto address = reinterpret_cast<GpuAddress>(given);
  if (Status status = check_lent(*device, address); !status) {
    source.release(source.context.get(), given, size_bytes, use);
    return tl::unexpected<Error>(status.error());
  }
  memory.held_.address = address;
  memory.held_.size_bytes = size_bytes;
  memory.held_.source = source;
  memory.held_.use = use;
  memory.held_.device = std::move(device);
  return memory;
}

GpuMemory& GpuMemory::operator=(GpuMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  held_ = std::exchange(other.held_, {});
  return *this;
}

void GpuMemory::release() {
  if (held_.address == 0) return;
  const GpuDevice::Scope scope(*held_.device);
  GpuFreeing& freeing = held_.device->freeing();
  const GpuAddress address = std::exchange(held_.address, 0);
  if (held_.source.release == nullptr) return freeing.free(address, held_.is_pooled, held_.end);
  void* const memory = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  freeing.give_back({held_.source, memory, held_.size_bytes, held_.use}, held_.end);
}

PinnedMemory::PinnedMemory(std::shared_ptr<const GpuDevice> device,
                           std::span<std::uint8_t> memory) {
  const GpuDriver& driver = device->driver();
  if (memory.empty() || driver.host_register == nullptr) return;
  const GpuDevice::Scope scope(*device);
  const GpuCode code = driver.host_register(memory.data(), memory.size(), 0);
  if (code == kGpuSuccess) memory_ = {memory.data(), Unpin{std::move(device)}};
}

void PinnedMemory::Unpin::operator()(void* memory) const {
  const GpuDevice::Scope scope(*device);
  (void)device->driver().host_unregister(memory);
}

void GpuArena::used_until(GpuEvent end) {
  for (GpuMemory& block : blocks_) block.used_until(end);
}

GpuArena::Piece GpuArena::add(std::size_t size_bytes, MemoryUse use) {
  sizes_.push_back(size_bytes);
  uses_.push_back(use);
  return sizes_.size() - 1;
}

// A single piece takes exactly its bytes, so that an emulator sees every access outside.
std::size_t GpuArena::block_bytes(const std::vector<Piece>& pieces) const {
  if (pieces.size() == 1) return sizes_[pieces[0]];
  std::size_t total = 0;
  for (const Piece piece : pieces) total += aligned(sizes_[piece]);
  return total;
}

void GpuArena::place(const GpuMemory& block, const std::vector<Piece>& pieces) {
  GpuAddress at = block.address();
  for (const Piece piece : pieces) {
    if (sizes_[piece] > 0) addresses_[piece] = at;
    at += aligned(sizes_[piece]);
  }
}

Status GpuArena::allocate(const std::shared_ptr<const GpuDevice>& device, GpuStream stream,
                          const MemorySource& source) {
  addresses_.assign(sizes_.size(), 0);
  for (const std::size_t size : sizes_) {
    if (__builtin_add_overflow(total_bytes_, aligned(size), &total_bytes_)) {
      return fail(ErrorKind::OutOfMemory, "more memory than any device has");
    }
  }
  const bool is_lent = source.allocate != nullptr;
  const bool is_apart = device->driver().allocates_apart;
  std::vector<std::vector<Piece>> blocks(is_apart ? sizes_.size() : is_lent ? 2 : 1);
  for (Piece piece = 0; piece < sizes_.size(); ++piece) {
    const std::size_t use = is_lent ? static_cast<std::size_t>(uses_[piece]) : 0;
    blocks[is_apart ? piece : use].push_back(piece);
  }
  for (const auto& pieces : blocks) {
    if (pieces.empty()) continue;
    const std::size_t size = block_bytes(pieces);
    auto block = TRY(is_lent ? GpuMemory::allocate_from(source, uses_[pieces[0]], device, size)
                             : GpuMemory::allocate_on(device, size, stream));
    place(block, pieces);
    blocks_.push_back(std::move(block));
  }
  return Ok{};
}

}  // namespace cinch::rt
