// Bodies of image_use.h. Device memory is the process's own, with one allocation for each piece, so
// that a sanitizer watches it, too.
#include "tests/fuzz/image_use.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "runtime/image/gpu_abi.h"

namespace cinch::fuzz {
namespace {

using rt::GpuAddress;
using rt::GpuCode;
using rt::kGpuInvalidValue;
using rt::kGpuOutOfMemory;
using rt::kGpuSuccess;

struct FakeMemory {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::size_t size = 0;
};
struct FakeGpu {
  std::map<GpuAddress, FakeMemory> memory;
  std::size_t total_bytes = 0;
  const rt::ProgramImage* image = nullptr;
  std::string arch;
  rt::GpuDriver driver{};
};
FakeGpu g_fake;

// Any non-null handle.
template <typename Handle>
GpuCode give_handle(Handle* handle) {
  static int place = 0;
  *handle = reinterpret_cast<Handle>(&place);
  return kGpuSuccess;
}

bool is_allocated(GpuAddress address, std::uint64_t size_bytes) {
  auto at = g_fake.memory.upper_bound(address);
  if (at == g_fake.memory.begin()) return false;
  --at;
  const std::uint64_t offset = address - at->first;
  return offset <= at->second.size && size_bytes <= at->second.size - offset;
}

std::uint8_t* memory_at(GpuAddress address, std::size_t size_bytes) {
  if (!is_allocated(address, size_bytes)) std::abort();
  return reinterpret_cast<std::uint8_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

GpuCode memory_alloc(GpuAddress* address, std::size_t size_bytes) {
  if (size_bytes > kFakeGpuBytes - g_fake.total_bytes) return kGpuOutOfMemory;
  FakeMemory made{std::make_unique<std::uint8_t[]>(size_bytes), size_bytes};
  *address = reinterpret_cast<GpuAddress>(made.bytes.get());
  g_fake.memory[*address] = std::move(made);
  g_fake.total_bytes += size_bytes;
  return kGpuSuccess;
}

GpuCode memory_free(GpuAddress address) {
  const auto at = g_fake.memory.find(address);
  if (at == g_fake.memory.end()) std::abort();
  g_fake.total_bytes -= at->second.size;
  g_fake.memory.erase(at);
  return kGpuSuccess;
}

GpuCode copy_to_device(GpuAddress to, const void* from, std::size_t size_bytes, rt::GpuStream) {
  if (size_bytes == 0) return kGpuSuccess;
  if (to == 0) return kGpuInvalidValue;
  std::memcpy(memory_at(to, size_bytes), from, size_bytes);
  return kGpuSuccess;
}

GpuCode copy_to_host(void* to, GpuAddress from, std::size_t size_bytes, rt::GpuStream) {
  if (size_bytes == 0) return kGpuSuccess;
  if (from == 0) return kGpuInvalidValue;
  std::memcpy(to, memory_at(from, size_bytes), size_bytes);
  return kGpuSuccess;
}

GpuCode copy_on_device(GpuAddress to, GpuAddress from, std::size_t size_bytes, rt::GpuStream) {
  if (size_bytes == 0) return kGpuSuccess;
  if (to == 0 || from == 0) return kGpuInvalidValue;
  std::memcpy(memory_at(to, size_bytes), memory_at(from, size_bytes), size_bytes);
  return kGpuSuccess;
}

GpuCode fill(GpuAddress to, unsigned char byte, std::size_t size_bytes, rt::GpuStream) {
  if (size_bytes == 0) return kGpuSuccess;
  if (to == 0) return kGpuInvalidValue;
  std::memset(memory_at(to, size_bytes), byte, size_bytes);
  return kGpuSuccess;
}

std::uint64_t word_at(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

void check_tensor(const rt::GpuTensorLayout& layout, const std::uint8_t* entry) {
  for (std::size_t b = 0; b < g_fake.image->buffers.size(); ++b) {
    const std::uint64_t address = word_at(entry + layout.buffers + 8 * b);
    const std::uint64_t bytes = word_at(entry + layout.bytes + 8 * b);
    if (address != 0 && !is_allocated(address, bytes)) std::abort();
  }
}

GpuCode launch(rt::GpuFunction, unsigned grid_x, unsigned, unsigned, unsigned block_x, unsigned,
               unsigned, unsigned shared_bytes, rt::GpuStream, void** params, void**) {
  rt::GpuLaunch args;
  std::memcpy(&args, params[0], sizeof args);
  const bool is_possible = grid_x > 0 && block_x > 0 && block_x <= 1024 &&
                           shared_bytes <= rt::kMaxGpuSharedBytes &&
                           args.step.num_conditions <= rt::kMaxGpuConditions;
  if (!is_possible) std::abort();
  const rt::GpuTensorLayout layout = rt::gpu_tensor_layout(*g_fake.image);
  const std::uint8_t* table = memory_at(args.tensors, layout.size_bytes * args.num_tensors);
  for (std::uint32_t t = 0; t < args.num_tensors; ++t) {
    check_tensor(layout, table + layout.size_bytes * t);
  }
  if (args.steps != 0) memory_at(args.steps, sizeof(rt::GpuStep) * args.num_steps);
  return kGpuSuccess;
}

GpuCode device_attribute(int* value, int attribute, int) {
  const bool is_many = attribute == static_cast<int>(rt::GpuAttribute::Multiprocessors);
  *value = is_many ? 4 : 0;
  return kGpuSuccess;
}

GpuCode pointer_attribute(void* value, int attribute, GpuAddress address) {
  if (!is_allocated(address, 0)) return kGpuInvalidValue;
  const bool is_type = attribute == static_cast<int>(rt::GpuPointerAttribute::MemoryType);
  const unsigned word = is_type ? 2 : 0;
  std::memcpy(value, &word, sizeof word);
  return kGpuSuccess;
}

void fill_table(rt::GpuDriver& table) {
  table.init = [](unsigned) { return kGpuSuccess; };
  table.device_count = [](int* count) { return *count = 1, kGpuSuccess; };
  table.device_get = [](int* device, int) { return *device = 0, kGpuSuccess; };
  table.device_name = [](char* name, int, int) { return *name = '\0', kGpuSuccess; };
  table.device_attribute = device_attribute;
  table.context_retain = [](rt::GpuContext* context, int) { return give_handle(context); };
  table.context_release = [](int) { return kGpuSuccess; };
  table.context_push = [](rt::GpuContext) { return kGpuSuccess; };
  table.context_pop = [](rt::GpuContext* context) { return give_handle(context); };
  table.context_synchronize = [] { return kGpuSuccess; };
  table.memory_alloc = memory_alloc;
  table.memory_free = memory_free;
  table.pointer_attribute = pointer_attribute;
  table.copy_to_device = copy_to_device;
  table.copy_to_host = copy_to_host;
  table.copy_on_device = copy_on_device;
  table.fill = fill;
  table.stream_synchronize = [](rt::GpuStream) { return kGpuSuccess; };
  table.stream_wait_event = [](rt::GpuStream, rt::GpuEvent, unsigned) { return kGpuSuccess; };
  table.event_create = [](rt::GpuEvent* event, unsigned) { return give_handle(event); };
  table.event_destroy = [](rt::GpuEvent) { return kGpuSuccess; };
  table.event_record = [](rt::GpuEvent, rt::GpuStream) { return kGpuSuccess; };
  table.event_synchronize = [](rt::GpuEvent) { return kGpuSuccess; };
  table.stream_is_capturing = [](rt::GpuStream, int* status) { return *status = 0, kGpuSuccess; };
  table.module_load = [](rt::GpuModuleHandle* module, const void*) { return give_handle(module); };
  table.module_unload = [](rt::GpuModuleHandle) { return kGpuSuccess; };
  table.module_function = [](rt::GpuFunction* function, rt::GpuModuleHandle, const char*) {
    return give_handle(function);
  };
  table.launch = launch;
  table.error_name = [](GpuCode, const char** name) { return *name = "error", kGpuSuccess; };
  table.error_text = [](GpuCode, const char** text) { return *text = "error", kGpuSuccess; };
  table.allocates_apart = true;
}

}  // namespace

const rt::GpuDriver& fake_gpu_driver(const rt::ProgramImage& image) {
  g_fake.image = &image;
  g_fake.arch = image.target.substr(image.target.find(':') + 1);
  fill_table(g_fake.driver);
  g_fake.driver.arch = g_fake.arch.c_str();
  return g_fake.driver;
}

}  // namespace cinch::fuzz
