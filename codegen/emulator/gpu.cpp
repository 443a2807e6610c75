#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "codegen/emulator/gpu.h"
#include "codegen/emulator/launch.h"

namespace cinch::emulator {
namespace {

using rt::ErrorKind;

constexpr std::uint64_t kMaxBlockThreads = 1024;
// For a block whose kernel requested no more.
constexpr std::uint64_t kMaxSharedBytes = std::uint64_t{48} * 1024;

rt::Status outside(const char* what) {
  return rt::invalid(std::string(what) + ": the range is not within one allocation of the device");
}

std::uint64_t product(const Dim& dim) {
  return std::uint64_t{dim.x} * dim.y * dim.z;
}

rt::Status check_shape(const KernelEntry& kernel, const Dim& grid, const Dim& block,
                       std::size_t shared_bytes) {
  const bool is_empty = product(grid) == 0 || product(block) == 0;
  if (is_empty || product(block) > kMaxBlockThreads) {
    return rt::invalid(std::string(kernel.name) + ": blocks have 1 to " +
                       std::to_string(kMaxBlockThreads) + " threads, grids at least one block");
  }
  const std::uint64_t padded = std::bit_ceil(std::max<std::uint64_t>(product(block), kWarpLanes));
  const std::uint64_t most = (std::uint64_t{1} << Access::kThreadBits) / padded;
  if (grid.x > most || grid.y > most || grid.z > most || product(grid) > most) {
    return rt::invalid(std::string(kernel.name) + ": the emulated GPU runs at most " +
                       std::to_string(most) + " blocks of this size");
  }
  std::uint64_t shared = shared_bytes;
  for (std::uint64_t i = 0; i < kernel.num_shared; ++i) shared += kernel.shared[i].size_bytes;
  if (shared > kMaxSharedBytes) {
    return rt::invalid(std::string(kernel.name) + ": " + std::to_string(shared) +
                       " bytes of shared memory in a block, more than " +
                       std::to_string(kMaxSharedBytes));
  }
  return rt::Ok{};
}

}  // namespace

struct Gpu::Device {
  explicit Device(const GpuOptions& given)
      : options(given), arena(given.memory_bytes), shadow(arena.size_bytes()) {}

  GpuOptions options;
  Arena arena;
  Shadow shadow;
  StackPool stacks;
  std::uint64_t generation = 0, num_launches = 0;
  std::vector<Finding> findings;

  // Does it lie within one allocation that exists already?
  bool has(const void* p, std::size_t size_bytes) const {
    if (!arena.contains(p, size_bytes)) return false;
    return size_bytes == 0 || (arena.state()[arena.offset_of(p)] & kAllocated) != 0;
  }

  rt::Status mark(void* memory, std::size_t size_bytes, std::uint8_t state) const {
    if (!arena.contains(memory, size_bytes)) return outside("memory written by the host");
    std::memset(arena.state() + arena.offset_of(memory), state, size_bytes);
    return rt::Ok{};
  }
};

Gpu::Gpu(const GpuOptions& options) : device_(std::make_unique<Device>(options)) {}
Gpu::~Gpu() = default;

rt::Result<void*> Gpu::allocate(std::size_t size_bytes) {
  return device_->arena.allocate(size_bytes);
}

rt::Status Gpu::free(void* memory) {
  return device_->arena.free(memory);
}

std::size_t Gpu::allocated_bytes() const {
  return device_->arena.allocated_bytes();
}

std::size_t Gpu::memory_bytes() const {
  return device_->options.memory_bytes;
}

rt::Status Gpu::copy_to(void* device, const void* host, std::size_t size_bytes) {
  if (!device_->has(device, size_bytes)) return outside("copy to the device");
  if (size_bytes > 0) std::memcpy(device, host, size_bytes);
  return mark_initialised(device, size_bytes);
}

rt::Status Gpu::copy_from(void* host, const void* device, std::size_t size_bytes) const {
  if (!device_->has(device, size_bytes)) return outside("copy from the device");
  if (size_bytes > 0) std::memcpy(host, device, size_bytes);
  return rt::Ok{};
}

rt::Status Gpu::copy(void* to, const void* from, std::size_t size_bytes) {
  if (!device_->has(to, size_bytes) || !device_->has(from, size_bytes)) {
    return outside("copy within the device");
  }
  if (size_bytes == 0) return rt::Ok{};
  Arena& arena = device_->arena;
  std::memmove(to, from, size_bytes);
  std::memmove(arena.state() + arena.offset_of(to), arena.state() + arena.offset_of(from),
               size_bytes);
  return rt::Ok{};
}

rt::Status Gpu::fill(void* device, std::uint8_t byte, std::size_t size_bytes) {
  if (!device_->has(device, size_bytes)) return outside("fill");
  if (size_bytes > 0) std::memset(device, byte, size_bytes);
  return mark_initialised(device, size_bytes);
}

rt::Status Gpu::mark_initialised(void* device, std::size_t size_bytes) {
  return device_->mark(device, size_bytes, kAllocated | kWritten);
}

rt::Status Gpu::mark_uninitialised(void* device, std::size_t size_bytes) {
  return device_->mark(device, size_bytes, kAllocated);
}

rt::Status Gpu::mark_absent(void* device, std::size_t size_bytes) {
  return device_->mark(device, size_bytes, 0);
}

bool Gpu::contains(const void* p, std::size_t size_bytes) const {
  return device_->arena.contains(p, size_bytes);
}

bool Gpu::is_initialised(const void* p, std::size_t size_bytes) const {
  if (!contains(p, size_bytes)) return false;
  const std::uint8_t* state = device_->arena.state() + device_->arena.offset_of(p);
  return std::all_of(state, state + size_bytes,
                     [](std::uint8_t byte) { return (byte & kWritten) != 0; });
}

rt::Status Gpu::launch(const Module& module, std::string_view kernel, void** params, Dim grid,
                       Dim block, std::size_t shared_bytes) {
  const KernelEntry* entry = module.find(kernel);
  if (!entry) {
    return rt::invalid("no kernel " + std::string(kernel));
  }
  if (auto status = check_shape(*entry, grid, block, shared_bytes); !status) return status;
  LaunchRequest request{&module, entry, params, grid, block, shared_bytes};
  const GpuOptions& options = device_->options;
  // Each launch has its own schedule.
  request.seed = options.schedule_seed * 0x9e3779b97f4a7c15u + ++device_->num_launches;
  request.checks = options.checks && module.has_checks();
  request.max_resident_blocks = std::max(2u, options.max_resident_blocks);
  request.max_loop_steps = options.max_loop_steps;
  static std::mutex mutex;  // hooks serve one launch at a time
  const std::lock_guard lock(mutex);
  Launch launch(request, {device_->arena, device_->shadow, device_->stacks, device_->generation});
  const rt::Status status = launch.run();
  std::vector<Finding>& findings = launch.findings();
  std::move(findings.begin(), findings.end(), std::back_inserter(device_->findings));
  return status;
}

const std::vector<Finding>& Gpu::findings() const {
  return device_->findings;
}

void Gpu::clear_findings() {
  device_->findings.clear();
}

rt::Result<Module> Module::load(std::span<const std::uint8_t> shared_object) {
  auto object = TRY(rt::SharedObject::load(shared_object, "emulated kernels"));
  const auto* info = static_cast<const ModuleInfo*>(object.find(kModuleSymbol));
  if (info == nullptr || info->abi != kModuleAbi) {
    return rt::fail(ErrorKind::CorruptFile,
                    "no kernels for the emulated GPU, or those of another version of Cinch");
  }
  return Module(std::move(object), info);
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  names.reserve(info_->num_kernels);
  for (std::uint64_t i = 0; i < info_->num_kernels; ++i) names.emplace_back(info_->kernels[i].name);
  return names;
}

const KernelEntry* Module::find(std::string_view kernel) const {
  for (std::uint64_t i = 0; i < info_->num_kernels; ++i) {
    if (kernel == info_->kernels[i].name) return &info_->kernels[i];
  }
  return nullptr;
}

std::string Module::line(std::uint32_t number) const {
  std::string_view text(info_->text, info_->text_size);
  for (std::uint32_t i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  if (number == 0) return {};
  text = text.substr(0, text.find('\n'));
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin));
}

}  // namespace cinch::emulator
