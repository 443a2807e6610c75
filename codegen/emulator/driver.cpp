// Functions of the table are C functions, so their device is the process's.
#include <cstring>

#include "codegen/emulator/driver.h"
#include "runtime/image/gpu_abi.h"

namespace cinch::emulator {
namespace {

using rt::GpuAddress;
using rt::GpuCode;
using rt::GpuStream;
using rt::kGpuInvalidHandle;
using rt::kGpuInvalidValue;
using rt::kGpuNotFound;
using rt::kGpuOutOfMemory;
using rt::kGpuSuccess;
using Work = Driver::Work;

constexpr std::size_t kStagedBytes = std::size_t{64} * 1024;

std::unique_ptr<Driver> g_driver;

// Addresses on the device are addresses of this process.
void* pointer(GpuAddress address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Puts an operation on the device's memory on the stream.
template <typename Operation>
GpuCode enqueue(GpuStream stream, const Operation& operation) {
  return g_driver->enqueue(
      stream, [=] { return g_driver->code_of(operation(g_driver->gpu), kGpuInvalidValue); });
}

// ---- device ----

GpuCode init(unsigned) {
  return kGpuSuccess;
}
GpuCode driver_version(int* version) {
  *version = 12000;
  return kGpuSuccess;
}
GpuCode device_count(int* count) {
  *count = 1;
  return kGpuSuccess;
}
GpuCode device_get(int* device, int) {
  *device = 0;
  return kGpuSuccess;
}
GpuCode device_name(char* name, int size, int) {
  std::strncpy(name, "emulated GPU", static_cast<std::size_t>(size) - 1);
  return kGpuSuccess;
}
GpuCode device_attribute(int* value, int attribute, int) {
  const bool is_one = attribute == static_cast<int>(rt::GpuAttribute::Multiprocessors) ||
                      attribute == static_cast<int>(rt::GpuAttribute::MemoryPools);
  *value = is_one ? 1 : 0;
  return kGpuSuccess;
}
GpuCode context_retain(rt::GpuContext* context, int) {
  *context = &g_driver->context;
  return kGpuSuccess;
}
GpuCode context_release(int) {
  return kGpuSuccess;
}
GpuCode context_push(rt::GpuContext) {
  return kGpuSuccess;
}
GpuCode context_pop(rt::GpuContext* context) {
  *context = &g_driver->context;
  return kGpuSuccess;
}

// ---- memory ----

GpuCode memory_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  *total_bytes = g_driver->gpu.memory_bytes();
  *free_bytes = *total_bytes - g_driver->gpu.allocated_bytes();
  return kGpuSuccess;
}
GpuCode find_memory(GpuAddress* address, std::size_t size_bytes) {
  if (GpuCode code; g_driver->fails(code)) return code;
  auto memory = g_driver->gpu.allocate(size_bytes);
  if (!memory) {
    // Frees the memory that streams have released by now.
    g_driver->drain_all();
    memory = g_driver->gpu.allocate(size_bytes);
  }
  if (!memory) return g_driver->code_of(tl::unexpected(memory.error()), kGpuOutOfMemory);
  *address = reinterpret_cast<GpuAddress>(*memory);
  return kGpuSuccess;
}
GpuCode memory_alloc(GpuAddress* address, std::size_t size_bytes) {
  if (g_driver->spoils_captures(false)) return rt::kGpuCaptureUnsupported;
  return find_memory(address, size_bytes);
}
// Waits for the device, as the real driver does.
GpuCode memory_free(GpuAddress address) {
  if (g_driver->spoils_captures(false)) return rt::kGpuCaptureUnsupported;
  g_driver->drain_all();
  return g_driver->code_of(g_driver->gpu.free(pointer(address)), kGpuInvalidValue);
}
// The address is valid at once; memory is there when the stream reaches it.
GpuCode memory_alloc_async(GpuAddress* address, std::size_t size_bytes, GpuStream stream) {
  const rt::GpuStreamObject* found = g_driver->find(stream);
  if (found == nullptr) return kGpuInvalidHandle;
  if (found->is_capturing) return kGpuInvalidValue;
  if (const GpuCode code = find_memory(address, size_bytes); code != kGpuSuccess) return code;
  void* const memory = pointer(*address);
  const GpuCode code =
      g_driver->code_of(g_driver->gpu.mark_absent(memory, size_bytes), kGpuInvalidValue);
  if (code != kGpuSuccess) return code;
  return enqueue(stream, [=](Gpu& gpu) { return gpu.mark_uninitialised(memory, size_bytes); });
}
GpuCode memory_free_async(GpuAddress address, GpuStream stream) {
  const rt::GpuStreamObject* found = g_driver->find(stream);
  if (found == nullptr) return kGpuInvalidHandle;
  if (found->is_capturing) return kGpuInvalidValue;
  return enqueue(stream, [=](Gpu& gpu) { return gpu.free(pointer(address)); });
}
GpuCode host_register(void* memory, std::size_t size_bytes, unsigned) {
  auto* const begin = static_cast<std::uint8_t*>(memory);
  const bool is_new = g_driver->pinned.emplace(begin, begin + size_bytes).second;
  return is_new ? kGpuSuccess : kGpuInvalidValue;
}
GpuCode host_unregister(void* memory) {
  const bool was_there = g_driver->pinned.erase(static_cast<std::uint8_t*>(memory)) == 1;
  return was_there ? kGpuSuccess : kGpuInvalidValue;
}
GpuCode context_synchronize() {
  if (g_driver->spoils_captures(true)) return rt::kGpuCaptureUnsupported;
  g_driver->drain_all();
  return kGpuSuccess;
}
GpuCode pointer_attribute(void* value, int attribute, GpuAddress address) {
  if (!g_driver->gpu.contains(pointer(address), 1)) return kGpuInvalidValue;
  constexpr unsigned kDeviceMemory = 2;
  const bool is_type = attribute == static_cast<int>(rt::GpuPointerAttribute::MemoryType);
  *static_cast<unsigned*>(value) = is_type ? kDeviceMemory : 0;
  return kGpuSuccess;
}
GpuCode copy_to_device(GpuAddress to, const void* from, std::size_t size_bytes, GpuStream stream) {
  if (GpuCode code; g_driver->fails(code)) return code;
  if (size_bytes > kStagedBytes || g_driver->is_pinned(from)) {
    return enqueue(stream, [=](Gpu& gpu) { return gpu.copy_to(pointer(to), from, size_bytes); });
  }
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  const std::vector<std::uint8_t> staged(bytes, bytes + size_bytes);
  return enqueue(stream,
                 [=](Gpu& gpu) { return gpu.copy_to(pointer(to), staged.data(), staged.size()); });
}
GpuCode copy_to_host(void* to, GpuAddress from, std::size_t size_bytes, GpuStream stream) {
  if (GpuCode code; g_driver->fails(code)) return code;
  return enqueue(stream, [=](Gpu& gpu) { return gpu.copy_from(to, pointer(from), size_bytes); });
}
GpuCode copy_on_device(GpuAddress to, GpuAddress from, std::size_t size_bytes, GpuStream stream) {
  return enqueue(stream,
                 [=](Gpu& gpu) { return gpu.copy(pointer(to), pointer(from), size_bytes); });
}
GpuCode fill(GpuAddress to, unsigned char byte, std::size_t size_bytes, GpuStream stream) {
  if (GpuCode code; g_driver->fails(code)) return code;
  return enqueue(stream, [=](Gpu& gpu) { return gpu.fill(pointer(to), byte, size_bytes); });
}

// ---- streams and graphs ----

GpuCode stream_create(GpuStream* stream, unsigned) {
  *stream = g_driver->streams.emplace_back(std::make_unique<rt::GpuStreamObject>()).get();
  return kGpuSuccess;
}
GpuCode stream_destroy(GpuStream stream) {
  g_driver->drain(stream);
  const auto removed =
      std::erase_if(g_driver->streams, [=](const auto& held) { return held.get() == stream; });
  return removed == 1 ? kGpuSuccess : kGpuInvalidHandle;
}
GpuCode stream_synchronize(GpuStream stream) {
  return g_driver->drain(stream);
}
GpuCode stream_is_capturing(GpuStream stream, int* status) {
  const rt::GpuStreamObject* found = g_driver->find(stream);
  if (found == nullptr) return kGpuInvalidHandle;
  *status = found->is_spoiled ? 2 : found->is_capturing ? 1 : 0;
  return kGpuSuccess;
}
GpuCode capture_begin(GpuStream stream, int mode) {
  rt::GpuStreamObject* found = g_driver->find(stream);
  if (found == nullptr || stream == nullptr) return kGpuInvalidHandle;
  found->is_capturing = true;
  found->capture_mode = mode;
  found->captured.clear();
  return kGpuSuccess;
}
GpuCode capture_end(GpuStream stream, rt::GpuGraph* graph) {
  rt::GpuStreamObject* found = g_driver->find(stream);
  if (found == nullptr || !found->is_capturing) return kGpuInvalidHandle;
  found->is_capturing = false;
  *graph = nullptr;
  if (std::exchange(found->is_spoiled, false)) return rt::kGpuCaptureInvalidated;
  *graph = new rt::GpuGraphObject{std::move(found->captured)};
  return kGpuSuccess;
}
GpuCode exchange_capture_mode(int* mode) {
  std::swap(*mode, g_driver->thread_capture_mode);
  return kGpuSuccess;
}
GpuCode graph_instantiate(rt::GpuGraphExec* exec, rt::GpuGraph graph, unsigned long long) {
  *exec = new rt::GpuGraphExecObject{graph->work};
  return kGpuSuccess;
}
GpuCode graph_launch(rt::GpuGraphExec exec, GpuStream stream) {
  for (const Work& work : exec->work) {
    if (const GpuCode code = g_driver->enqueue(stream, work); code != kGpuSuccess) return code;
  }
  return kGpuSuccess;
}
GpuCode graph_exec_destroy(rt::GpuGraphExec exec) {
  delete exec;
  return kGpuSuccess;
}
GpuCode graph_destroy(rt::GpuGraph graph) {
  delete graph;
  return kGpuSuccess;
}

// ---- modules and launches ----

// The end of the section headers, the last part of a 64-bit ELF file.
std::size_t elf_bytes(const std::uint8_t* image) {
  const auto read = [&](std::size_t offset, std::size_t size_bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, image + offset, size_bytes);
    return value;
  };
  constexpr std::size_t kHeadersAt = 40, kHeaderBytesAt = 58, kNumHeadersAt = 60;
  return read(kHeadersAt, 8) + read(kHeaderBytesAt, 2) * read(kNumHeadersAt, 2);
}

GpuCode module_load(rt::GpuModuleHandle* module, const void* image) {
  if (GpuCode code; g_driver->fails(code)) return code;
  if (g_driver->spoils_captures(false)) return rt::kGpuCaptureUnsupported;
  const auto* bytes = static_cast<const std::uint8_t*>(image);
  auto loaded = Module::load({bytes, elf_bytes(bytes)});
  if (!loaded) return g_driver->code_of(tl::unexpected(loaded.error()), rt::kGpuNoBinary);
  *module = new rt::GpuModuleObject{std::move(*loaded), {}};
  return kGpuSuccess;
}
GpuCode module_unload(rt::GpuModuleHandle module) {
  g_driver->drain_all();
  delete module;
  return kGpuSuccess;
}
GpuCode module_function(rt::GpuFunction* function, rt::GpuModuleHandle module, const char* name) {
  if (module->module.find(name) == nullptr) return kGpuNotFound;
  auto made = std::make_unique<rt::GpuFunctionObject>();
  made->module = &module->module;
  made->name = name;
  *function = module->functions.emplace_back(std::move(made)).get();
  return kGpuSuccess;
}

// Every kernel of ours takes one parameter, a GpuLaunch, whose bytes are copied at the launch.
GpuCode launch(rt::GpuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
               GpuStream stream, void** params, void**) {
  if (GpuCode code; g_driver->fails(code)) return code;
  const rt::GpuLaunch args = *static_cast<const rt::GpuLaunch*>(params[0]);
  const Dim grid{grid_x, grid_y, grid_z}, block{block_x, block_y, block_z};
  return g_driver->enqueue(stream, [=] {
    rt::GpuLaunch copy = args;
    void* held[] = {&copy};
    const rt::Status status =
        g_driver->gpu.launch(*function->module, function->name, held, grid, block, shared_bytes);
    return g_driver->code_of(status, rt::kGpuLaunchFailed);
  });
}
GpuCode function_attribute(int* value, int, rt::GpuFunction) {
  *value = 0;
  return kGpuSuccess;
}
GpuCode occupancy(int* num_blocks, rt::GpuFunction, int, std::size_t) {
  *num_blocks = 1;
  return kGpuSuccess;
}
GpuCode error_name(GpuCode code, const char** name) {
  *name = code == rt::kGpuLaunchFailed ? "a kernel failed on the emulated GPU" : "emulated GPU";
  return kGpuSuccess;
}
GpuCode error_text(GpuCode code, const char** text) {
  *text =
      code == kGpuInvalidHandle ? "no such stream, or it is not capturing" : g_driver->text.c_str();
  return kGpuSuccess;
}

// Events of the emulated driver: each notes the time when the stream reaches its place.

using rt::GpuEvent;
using Clock = std::chrono::steady_clock;
using EventPointer = std::shared_ptr<rt::GpuEventObject>;

// Null if there is no such event.
EventPointer find_event(GpuEvent event) {
  const auto& events = g_driver->events;
  const auto found = std::ranges::find(events, event, &EventPointer::get);
  return found == events.end() ? nullptr : *found;
}

GpuCode event_create(GpuEvent* event, unsigned) {
  if (GpuCode code; g_driver->fails(code)) return code;
  *event = g_driver->events.emplace_back(std::make_shared<rt::GpuEventObject>()).get();
  return kGpuSuccess;
}

GpuCode event_destroy(GpuEvent event) {
  const auto removed =
      std::erase_if(g_driver->events, [=](const auto& held) { return held.get() == event; });
  return removed == 1 ? kGpuSuccess : kGpuInvalidHandle;
}

// In a graph that is being captured an event would be a mark without a time, so this is rejected.
GpuCode event_record(GpuEvent event, rt::GpuStream stream) {
  if (GpuCode code; g_driver->fails(code)) return code;
  const EventPointer found = find_event(event);
  const rt::GpuStreamObject* into = g_driver->find(stream);
  if (found == nullptr || into == nullptr || into->is_capturing) return kGpuInvalidHandle;
  const auto mark = found->last = std::make_shared<Mark>(Mark{.stream = stream});
  return g_driver->enqueue(stream, [mark] {
    mark->reached_at = Clock::now();
    mark->is_reached = true;
    return kGpuSuccess;
  });
}

// Work behind the event goes on waiting.
GpuCode event_synchronize(GpuEvent event) {
  const EventPointer found = find_event(event);
  if (found == nullptr) return kGpuInvalidHandle;
  const std::shared_ptr<Mark> mark = found->last;
  if (mark == nullptr || mark->is_reached) return kGpuSuccess;
  const GpuCode code = g_driver->drain(mark->stream, mark.get());
  const bool is_lost = code == kGpuSuccess && !mark->is_reached;  // behind an earlier failure
  return is_lost ? rt::kGpuLaunchFailed : code;
}

// Runs waiting work, since nobody else does: a caller that asks repeatedly would otherwise wait for
// ever.
GpuCode event_query(GpuEvent event) {
  return event_synchronize(event);
}

// Waits for the event's present mark: the event may be recorded again before the stream gets there.
GpuCode stream_wait_event(rt::GpuStream stream, GpuEvent event, unsigned) {
  if (GpuCode code; g_driver->fails(code)) return code;
  const EventPointer found = find_event(event);
  const rt::GpuStreamObject* into = g_driver->find(stream);
  if (found == nullptr || into == nullptr || into->is_capturing) return kGpuInvalidHandle;
  const std::shared_ptr<Mark> mark = found->last;
  if (mark == nullptr || mark->is_reached || mark->stream == stream) return kGpuSuccess;
  return g_driver->enqueue(stream, [mark] { return g_driver->drain(mark->stream, mark.get()); });
}

GpuCode event_elapsed_time(float* milliseconds, GpuEvent start, GpuEvent end) {
  const EventPointer first = find_event(start), last = find_event(end);
  if (first == nullptr || last == nullptr) return kGpuInvalidHandle;
  const std::shared_ptr<Mark> from = first->last, to = last->last;
  if (from == nullptr || to == nullptr) return kGpuInvalidHandle;
  if (!from->is_reached || !to->is_reached) return rt::kGpuNotReady;
  *milliseconds =
      std::chrono::duration<float, std::milli>(to->reached_at - from->reached_at).count();
  return kGpuSuccess;
}

rt::GpuDriver make_table() {
  rt::GpuDriver table{};
#define CINCH_GPU_CALL(member, symbol, parameters) table.member = member;
#include "runtime/gpu/driver.def"
#undef CINCH_GPU_CALL
  table.allocates_apart = true;
  table.arch = "emulated";
  return table;
}

}  // namespace

const rt::GpuDriver& start_driver(const GpuOptions& options) {
  static const rt::GpuDriver kTable = make_table();
  g_driver.reset();
  g_driver = std::make_unique<Driver>(options);
  return kTable;
}

Gpu& driver_gpu() {
  return g_driver->gpu;
}

void fail_call(std::uint64_t calls_from_now, GpuCode code) {
  g_driver->has_planted = true;
  g_driver->planted_in = calls_from_now;
  g_driver->planted_code = code;
}

}  // namespace cinch::emulator
