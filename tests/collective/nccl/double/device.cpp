// Bodies of device.h, and the driver's functions.
#include "tests/collective/nccl/double/device.h"

#include <array>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "tests/collective/nccl/double/control.h"

struct cinch::rt::GpuContextObject {
  int device = 0;
};

struct cinch::rt::GpuEventObject {
  cinch::nccl_double::Stream stream;  // null: was not recorded
  std::uint64_t at = 0;
};

namespace cinch::nccl_double {
namespace {

using rt::GpuAddress;
using rt::GpuCode;
using rt::GpuEvent;
using rt::GpuStream;
using rt::kGpuInvalidHandle;
using rt::kGpuInvalidValue;
using rt::kGpuSuccess;

constexpr GpuCode kNoContext = 201;
constexpr std::size_t kStagedBytes = std::size_t{64} * 1024;
// Makes an address that no processor accepts.
constexpr GpuAddress kTag = GpuAddress{1} << 62;

struct Allocation {
  std::size_t size_bytes = 0;
  int device = 0;
  std::unique_ptr<std::uint8_t[]> bytes;  // null: memory of another allocator
  std::uint8_t* at = nullptr;
};

struct State {
  std::mutex mutex;
  std::map<GpuAddress, Allocation> memory;
  std::map<GpuStream, Stream> streams;
  std::map<GpuEvent, std::unique_ptr<rt::GpuEventObject>> events;
  Stream defaults[kDoubleDevices];
};

// Threads of streams may run to the end of the process.
State& state() {
  static auto* const kState = new State;
  return *kState;
}

thread_local std::vector<rt::GpuContext> t_contexts;

Stream make_stream(int device) {
  auto stream = std::make_shared<rt::GpuStreamObject>();
  stream->device = device;
  std::thread([stream] {
    std::unique_lock lock(stream->mutex);
    for (;;) {
      stream->moved.wait(lock, [&] { return !stream->work.empty() || stream->is_closed; });
      if (stream->work.empty()) return;
      const auto work = std::move(stream->work.front());
      stream->work.pop_front();
      lock.unlock();
      work();
      lock.lock();
      ++stream->num_done;
      stream->moved.notify_all();
    }
  }).detach();
  return stream;
}

bool has_done(const Stream& stream, std::uint64_t num_done) {
  const std::lock_guard lock(stream->mutex);
  return stream->num_done >= num_done;
}

// ---- device ----

GpuCode init(unsigned) {
  return kGpuSuccess;
}
GpuCode device_count(int* count) {
  *count = kDoubleDevices;
  return kGpuSuccess;
}
GpuCode device_get(int* device, int ordinal) {
  *device = ordinal;
  return kGpuSuccess;
}
GpuCode device_name(char* name, int size, int) {
  std::strncpy(name, "double of a GPU", static_cast<std::size_t>(size) - 1);
  return kGpuSuccess;
}
GpuCode device_attribute(int* value, int, int) {
  *value = 0;
  return kGpuSuccess;
}
GpuCode context_retain(rt::GpuContext* context, int device) {
  static auto contexts = [] {
    std::array<rt::GpuContextObject, kDoubleDevices> made{};
    for (int i = 0; i < kDoubleDevices; ++i) made[static_cast<std::size_t>(i)].device = i;
    return made;
  }();
  *context = &contexts[static_cast<std::size_t>(device)];
  return kGpuSuccess;
}
GpuCode context_release(int) {
  return kGpuSuccess;
}
GpuCode context_push(rt::GpuContext context) {
  t_contexts.push_back(context);
  return kGpuSuccess;
}
GpuCode context_pop(rt::GpuContext* context) {
  if (t_contexts.empty()) return kNoContext;
  *context = t_contexts.back();
  t_contexts.pop_back();
  return kGpuSuccess;
}
GpuCode context_synchronize() {
  if (current_device() < 0) return kNoContext;
  wait_for_device(current_device());
  return kGpuSuccess;
}

// ---- memory ----

GpuCode memory_alloc(GpuAddress* address, std::size_t size_bytes) {
  if (current_device() < 0) return kNoContext;
  Allocation made{size_bytes, current_device(), std::make_unique<std::uint8_t[]>(size_bytes)};
  made.at = made.bytes.get();
  std::memset(made.at, 0xcd, size_bytes);
  *address = reinterpret_cast<GpuAddress>(made.at) | kTag;
  const std::lock_guard lock(state().mutex);
  state().memory[*address] = std::move(made);
  return kGpuSuccess;
}
// Waits for the device, as the real driver does.
GpuCode memory_free(GpuAddress address) {
  if (current_device() < 0) return kNoContext;
  wait_for_device(current_device());
  const std::lock_guard lock(state().mutex);
  return state().memory.erase(address) == 1 ? kGpuSuccess : kGpuInvalidValue;
}
GpuCode pointer_attribute(void* value, int attribute, GpuAddress address) {
  const std::lock_guard lock(state().mutex);
  auto found = state().memory.upper_bound(address);
  if (found == state().memory.begin()) return kGpuInvalidValue;
  --found;
  if (address - found->first >= found->second.size_bytes) return kGpuInvalidValue;
  constexpr unsigned kDeviceMemory = 2;
  const auto which = static_cast<rt::GpuPointerAttribute>(attribute);
  const bool is_type = which == rt::GpuPointerAttribute::MemoryType;
  const bool is_device = which == rt::GpuPointerAttribute::DeviceOrdinal;
  *static_cast<unsigned*>(value) = is_type     ? kDeviceMemory
                                   : is_device ? static_cast<unsigned>(found->second.device)
                                               : 0;
  return kGpuSuccess;
}

// The real address of the bytes, on any device.
std::uint8_t* bytes_at(GpuAddress address, std::size_t size_bytes) {
  for (int device = 0; device < kDoubleDevices; ++device) {
    const auto* const pointer = reinterpret_cast<const void*>(address);  // NOLINT
    if (std::uint8_t* const at = memory_at(pointer, size_bytes, device)) return at;
  }
  return nullptr;
}

GpuCode copy_to_device(GpuAddress to, const void* from, std::size_t size_bytes, GpuStream stream) {
  const Stream on = find_stream(stream);
  std::uint8_t* const at = bytes_at(to, size_bytes);
  if (current_device() < 0) return kNoContext;
  if (on == nullptr) return kGpuInvalidHandle;
  if (at == nullptr) return kGpuInvalidValue;
  if (size_bytes > kStagedBytes) {
    wait_until(on, enqueue(on, [=] { std::memcpy(at, from, size_bytes); }));
    return kGpuSuccess;
  }
  const auto* const bytes = static_cast<const std::uint8_t*>(from);
  const std::vector<std::uint8_t> staged(bytes, bytes + size_bytes);
  enqueue(on, [=] { std::memcpy(at, staged.data(), staged.size()); });
  return kGpuSuccess;
}
GpuCode copy_to_host(void* to, GpuAddress from, std::size_t size_bytes, GpuStream stream) {
  const Stream on = find_stream(stream);
  const std::uint8_t* const at = bytes_at(from, size_bytes);
  if (current_device() < 0) return kNoContext;
  if (on == nullptr) return kGpuInvalidHandle;
  if (at == nullptr) return kGpuInvalidValue;
  wait_until(on, enqueue(on, [=] { std::memcpy(to, at, size_bytes); }));
  return kGpuSuccess;
}
GpuCode copy_on_device(GpuAddress to, GpuAddress from, std::size_t size_bytes, GpuStream stream) {
  const Stream on = find_stream(stream);
  std::uint8_t* const at = bytes_at(to, size_bytes);
  const std::uint8_t* const source = bytes_at(from, size_bytes);
  if (on == nullptr) return kGpuInvalidHandle;
  if (at == nullptr || source == nullptr) return kGpuInvalidValue;
  enqueue(on, [=] { std::memmove(at, source, size_bytes); });
  return kGpuSuccess;
}
GpuCode fill(GpuAddress to, unsigned char byte, std::size_t size_bytes, GpuStream stream) {
  const Stream on = find_stream(stream);
  std::uint8_t* const at = bytes_at(to, size_bytes);
  if (on == nullptr) return kGpuInvalidHandle;
  if (at == nullptr) return kGpuInvalidValue;
  enqueue(on, [=] { std::memset(at, byte, size_bytes); });
  return kGpuSuccess;
}

// ---- streams and events ----

GpuCode stream_create(GpuStream* stream, unsigned) {
  if (current_device() < 0) return kNoContext;
  const Stream made = make_stream(current_device());
  *stream = made.get();
  const std::lock_guard lock(state().mutex);
  state().streams[made.get()] = made;
  return kGpuSuccess;
}
// Its waiting work is done later.
GpuCode stream_destroy(GpuStream stream) {
  const Stream found = stream == nullptr ? nullptr : find_stream(stream);
  if (found == nullptr) return kGpuInvalidHandle;
  {
    const std::lock_guard lock(found->mutex);
    found->is_closed = true;
    found->moved.notify_all();
  }
  const std::lock_guard lock(state().mutex);
  state().streams.erase(stream);
  return kGpuSuccess;
}
GpuCode stream_synchronize(GpuStream stream) {
  const Stream found = find_stream(stream);
  if (found == nullptr) return kGpuInvalidHandle;
  wait_until(found, enqueue(found, [] {}));
  return kGpuSuccess;
}

rt::GpuEventObject* find_event(GpuEvent event) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().events.find(event);
  return found == state().events.end() ? nullptr : found->second.get();
}
GpuCode event_create(GpuEvent* event, unsigned) {
  if (current_device() < 0) return kNoContext;
  auto made = std::make_unique<rt::GpuEventObject>();
  *event = made.get();
  const std::lock_guard lock(state().mutex);
  state().events[*event] = std::move(made);
  return kGpuSuccess;
}
GpuCode event_destroy(GpuEvent event) {
  const std::lock_guard lock(state().mutex);
  return state().events.erase(event) == 1 ? kGpuSuccess : kGpuInvalidHandle;
}
GpuCode event_record(GpuEvent event, GpuStream stream) {
  rt::GpuEventObject* const found = find_event(event);
  const Stream on = find_stream(stream);
  if (found == nullptr || on == nullptr) return kGpuInvalidHandle;
  found->stream = on;
  found->at = enqueue(on, [] {});
  return kGpuSuccess;
}
GpuCode event_query(GpuEvent event) {
  const rt::GpuEventObject* const found = find_event(event);
  if (found == nullptr) return kGpuInvalidHandle;
  const bool is_reached = found->stream == nullptr || has_done(found->stream, found->at);
  return is_reached ? kGpuSuccess : rt::kGpuNotReady;
}
GpuCode event_synchronize(GpuEvent event) {
  const rt::GpuEventObject* const found = find_event(event);
  if (found == nullptr) return kGpuInvalidHandle;
  if (found->stream != nullptr) wait_until(found->stream, found->at);
  return kGpuSuccess;
}
GpuCode stream_wait_event(GpuStream stream, GpuEvent event, unsigned) {
  const rt::GpuEventObject* const found = find_event(event);
  const Stream on = find_stream(stream);
  if (found == nullptr || on == nullptr) return kGpuInvalidHandle;
  if (found->stream == nullptr) return kGpuSuccess;
  enqueue(on, [other = found->stream, at = found->at] { wait_until(other, at); });
  return kGpuSuccess;
}

GpuCode error_name(GpuCode, const char** name) {
  *name = "double of a GPU";
  return kGpuSuccess;
}
GpuCode error_text(GpuCode code, const char** text) {
  *text = code == kNoContext ? "no context is current" : "no such memory, stream or event";
  return kGpuSuccess;
}

rt::GpuDriver make_table() {
  rt::GpuDriver table{};
  table.init = init;
  table.device_count = device_count;
  table.device_get = device_get;
  table.device_name = device_name;
  table.device_attribute = device_attribute;
  table.context_retain = context_retain;
  table.context_release = context_release;
  table.context_push = context_push;
  table.context_pop = context_pop;
  table.context_synchronize = context_synchronize;
  table.memory_alloc = memory_alloc;
  table.memory_free = memory_free;
  table.pointer_attribute = pointer_attribute;
  table.copy_to_device = copy_to_device;
  table.copy_to_host = copy_to_host;
  table.copy_on_device = copy_on_device;
  table.fill = fill;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_synchronize = stream_synchronize;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_query = event_query;
  table.event_synchronize = event_synchronize;
  table.stream_wait_event = stream_wait_event;
  table.error_name = error_name;
  table.error_text = error_text;
  table.arch = "double";
  return table;
}

}  // namespace

std::uint64_t enqueue(const Stream& stream, std::function<void()> work) {
  const std::lock_guard lock(stream->mutex);
  stream->work.push_back(std::move(work));
  stream->moved.notify_all();
  return ++stream->num_put;
}

void wait_until(const Stream& stream, std::uint64_t num_done) {
  std::unique_lock lock(stream->mutex);
  stream->moved.wait(lock, [&] { return stream->num_done >= num_done; });
}

void wait_for_device(int device) {
  std::vector<Stream> all;
  {
    const std::lock_guard lock(state().mutex);
    for (const auto& [handle, stream] : state().streams) {
      if (stream->device == device) all.push_back(stream);
    }
    if (state().defaults[device] != nullptr) all.push_back(state().defaults[device]);
  }
  for (const Stream& stream : all) {
    std::unique_lock lock(stream->mutex);
    stream->moved.wait(lock, [&stream, put = stream->num_put] { return stream->num_done >= put; });
  }
}

Stream find_stream(GpuStream stream) {
  const std::lock_guard lock(state().mutex);
  if (stream == nullptr) {
    if (current_device() < 0) return nullptr;
    Stream& found = state().defaults[current_device()];
    if (found == nullptr) found = make_stream(current_device());
    return found;
  }
  const auto found = state().streams.find(stream);
  return found == state().streams.end() ? nullptr : found->second;
}

int current_device() {
  return t_contexts.empty() ? -1 : t_contexts.back()->device;
}

std::uint8_t* memory_at(const void* address, std::size_t size_bytes, int device) {
  const auto at = reinterpret_cast<GpuAddress>(address);
  const std::lock_guard lock(state().mutex);
  auto found = state().memory.upper_bound(at);
  if (found == state().memory.begin()) return nullptr;
  --found;
  const Allocation& in = found->second;
  const GpuAddress offset = at - found->first;
  if (in.device != device || offset > in.size_bytes || size_bytes > in.size_bytes - offset) {
    return nullptr;
  }
  return in.at + offset;
}

void adopt(GpuAddress memory, std::size_t size_bytes) {
  auto* const at = reinterpret_cast<std::uint8_t*>(memory);  // NOLINT(performance-no-int-to-ptr)
  const std::lock_guard lock(state().mutex);
  state().memory[memory] = {size_bytes, current_device(), nullptr, at};
}

void forget(GpuAddress memory) {
  const std::lock_guard lock(state().mutex);
  state().memory.erase(memory);
}

}  // namespace cinch::nccl_double

extern "C" {

__attribute__((visibility("default"))) const cinch::rt::GpuDriver* nccl_double_driver() {
  static const cinch::rt::GpuDriver kTable = cinch::nccl_double::make_table();
  return &kTable;
}

__attribute__((visibility("default"))) void nccl_double_sleep(cinch::rt::GpuStream stream,
                                                              int milliseconds) {
  cinch::nccl_double::enqueue(cinch::nccl_double::find_stream(stream), [milliseconds] {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  });
}

__attribute__((visibility("default"))) void nccl_double_adopt(cinch::rt::GpuAddress memory,
                                                              std::size_t size_bytes) {
  cinch::nccl_double::adopt(memory, size_bytes);
}

__attribute__((visibility("default"))) void nccl_double_forget(cinch::rt::GpuAddress memory) {
  cinch::nccl_double::forget(memory);
}

__attribute__((visibility("default"))) void nccl_double_enqueue(cinch::rt::GpuStream stream,
                                                                const std::function<void()>& work) {
  cinch::nccl_double::enqueue(cinch::nccl_double::find_stream(stream), work);
}
}
