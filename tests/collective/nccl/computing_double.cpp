// The fake of NCCL with devices that compute; see double_world.h.
#include "tests/collective/nccl/double_world.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "codegen/emulator/driver.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::testing {
namespace {

using rt::GpuAddress;
using rt::GpuCode;
using rt::GpuDriver;
using rt::GpuStream;
using rt::kGpuSuccess;

constexpr std::size_t kStagedBytes = std::size_t{64} * 1024;

// The emulated device runs on one thread at a time; its own default stream is used only under a
// lock, and always drained there.
struct State {
  std::mutex mutex;
  const NcclDouble* library = nullptr;
  const GpuDriver* streams = nullptr;  // of the fake
  const GpuDriver* gpu = nullptr;      // of the emulated GPU
  std::atomic<GpuCode> failure = kGpuSuccess;
  std::atomic<std::uint64_t> num_copied_bytes = 0, num_lost_writes = 0;
};

State& state() {
  static auto* const kState = new State;  // threads of streams may outlive everything
  return *kState;
}

template <typename Work>
GpuCode run_on_gpu(const Work& work) {
  const std::lock_guard lock(state().mutex);
  GpuCode code = work();
  if (code == kGpuSuccess) code = state().gpu->stream_synchronize(nullptr);
  return code;
}

template <typename Work>
GpuCode enqueue(GpuStream stream, const Work& work) {
  state().library->enqueue(stream, [work] {
    const GpuCode code = run_on_gpu(work);
    GpuCode none = kGpuSuccess;
    if (code != kGpuSuccess) state().failure.compare_exchange_strong(none, code);
  });
  return state().failure;
}

void note_write(void* memory, std::size_t size_bytes) {
  const std::lock_guard lock(state().mutex);
  const bool is_there = emulator::driver_gpu().mark_initialised(memory, size_bytes).has_value();
  if (!is_there) ++state().num_lost_writes;
}

GpuCode device_attribute(int* value, int attribute, int device) {
  if (attribute != static_cast<int>(rt::GpuAttribute::MemoryPools)) {
    return state().gpu->device_attribute(value, attribute, device);
  }
  *value = 0;
  return kGpuSuccess;
}

GpuCode memory_alloc(GpuAddress* address, std::size_t size_bytes) {
  const GpuCode code = run_on_gpu([&] { return state().gpu->memory_alloc(address, size_bytes); });
  if (code == kGpuSuccess) state().library->adopt(*address, size_bytes);
  return code;
}

GpuCode memory_free(GpuAddress address) {
  const GpuCode code = state().streams->context_synchronize();
  if (code != kGpuSuccess) return code;
  state().library->forget(address);
  return run_on_gpu([=] { return state().gpu->memory_free(address); });
}

GpuCode copy_to_device(GpuAddress to, const void* from, std::size_t size_bytes, GpuStream stream) {
  state().num_copied_bytes += size_bytes;
  if (size_bytes > kStagedBytes) {
    return enqueue(stream,
                   [=] { return state().gpu->copy_to_device(to, from, size_bytes, nullptr); });
  }
  const auto* const bytes = static_cast<const std::uint8_t*>(from);
  const std::vector<std::uint8_t> staged(bytes, bytes + size_bytes);
  return enqueue(
      stream, [=] { return state().gpu->copy_to_device(to, staged.data(), size_bytes, nullptr); });
}

GpuCode copy_to_host(void* to, GpuAddress from, std::size_t size_bytes, GpuStream stream) {
  state().num_copied_bytes += size_bytes;
  return enqueue(stream, [=] { return state().gpu->copy_to_host(to, from, size_bytes, nullptr); });
}

GpuCode copy_on_device(GpuAddress to, GpuAddress from, std::size_t size_bytes, GpuStream stream) {
  return enqueue(stream,
                 [=] { return state().gpu->copy_on_device(to, from, size_bytes, nullptr); });
}

GpuCode fill(GpuAddress to, unsigned char byte, std::size_t size_bytes, GpuStream stream) {
  return enqueue(stream, [=] { return state().gpu->fill(to, byte, size_bytes, nullptr); });
}

GpuCode stream_synchronize(GpuStream stream) {
  const GpuCode code = state().streams->stream_synchronize(stream);
  return code != kGpuSuccess ? code : state().failure.load();
}

GpuCode stream_is_capturing(GpuStream /*stream*/, int* status) {
  *status = 0;
  return kGpuSuccess;
}

GpuCode launch(rt::GpuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
               GpuStream stream, void** params, void** /*extra*/) {
  const rt::GpuLaunch args = *static_cast<const rt::GpuLaunch*>(params[0]);
  return enqueue(stream, [=] {
    rt::GpuLaunch copy = args;
    void* held[] = {&copy};
    return state().gpu->launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                               shared_bytes, nullptr, held, nullptr);
  });
}

GpuCode module_load(rt::GpuModuleHandle* module, const void* image) {
  return run_on_gpu([=] { return state().gpu->module_load(module, image); });
}
GpuCode module_unload(rt::GpuModuleHandle module) {
  return run_on_gpu([=] { return state().gpu->module_unload(module); });
}
GpuCode module_function(rt::GpuFunction* function, rt::GpuModuleHandle module, const char* name) {
  return run_on_gpu([=] { return state().gpu->module_function(function, module, name); });
}

GpuDriver make_table(const GpuDriver& streams, const GpuDriver& gpu) {
  GpuDriver table = streams;
  table.driver_version = gpu.driver_version;
  table.device_attribute = device_attribute;
  table.memory_alloc = memory_alloc;
  table.memory_free = memory_free;
  table.copy_to_device = copy_to_device;
  table.copy_to_host = copy_to_host;
  table.copy_on_device = copy_on_device;
  table.fill = fill;
  table.stream_synchronize = stream_synchronize;
  table.stream_is_capturing = stream_is_capturing;
  table.launch = launch;
  table.module_load = module_load;
  table.module_unload = module_unload;
  table.module_function = module_function;
  table.function_attribute = gpu.function_attribute;
  table.occupancy = gpu.occupancy;
  table.error_name = gpu.error_name;
  table.error_text = gpu.error_text;
  table.allocates_apart = gpu.allocates_apart;
  table.arch = gpu.arch;
  return table;
}

}  // namespace

ComputingDouble::ComputingDouble(const emulator::GpuOptions& options)
    : library_(NcclDouble::open("nccl_double")) {
  static GpuDriver table;
  const NcclDouble& plain = NcclDouble::open("nccl_double");
  state().library = &plain;
  state().streams = plain.driver;
  state().gpu = &emulator::start_driver(options);
  state().failure = kGpuSuccess;
  state().num_lost_writes = 0;
  table = make_table(*plain.driver, *state().gpu);
  library_.driver = &table;
  library_.on_write(note_write);
}

ComputingDouble::~ComputingDouble() {
  library_.on_write(nullptr);
}

std::uint64_t ComputingDouble::num_copied_bytes() const {
  return state().num_copied_bytes;
}

std::uint64_t ComputingDouble::num_lost_writes() const {
  return state().num_lost_writes;
}

}  // namespace cinch::testing
