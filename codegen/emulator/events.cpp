// Events of the emulated driver: each notes the time when the stream reaches its place.
#include "codegen/emulator/driver_state.h"

namespace cinch::emulator {
namespace {

using rt::GpuCode;
using rt::GpuEvent;
using rt::kGpuInvalidHandle;
using rt::kGpuSuccess;
using Clock = std::chrono::steady_clock;
using EventPointer = std::shared_ptr<rt::GpuEventObject>;

// Null if there is no such event.
EventPointer find_event(GpuEvent event) {
  const auto& events = driver_state()->events;
  const auto found = std::ranges::find(events, event, &EventPointer::get);
  return found == events.end() ? nullptr : *found;
}

GpuCode event_create(GpuEvent* event, unsigned) {
  if (GpuCode code; driver_state()->fails(code)) return code;
  *event = driver_state()->events.emplace_back(std::make_shared<rt::GpuEventObject>()).get();
  return kGpuSuccess;
}

GpuCode event_destroy(GpuEvent event) {
  const auto removed =
      std::erase_if(driver_state()->events, [=](const auto& held) { return held.get() == event; });
  return removed == 1 ? kGpuSuccess : kGpuInvalidHandle;
}

// In a graph that is being captured an event would be a mark without a time, so this is rejected.
GpuCode event_record(GpuEvent event, rt::GpuStream stream) {
  if (GpuCode code; driver_state()->fails(code)) return code;
  const EventPointer found = find_event(event);
  const rt::GpuStreamObject* into = driver_state()->find(stream);
  if (found == nullptr || into == nullptr || into->is_capturing) return kGpuInvalidHandle;
  const auto mark = found->last = std::make_shared<Mark>(Mark{.stream = stream});
  return driver_state()->enqueue(stream, [mark] {
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
  const GpuCode code = driver_state()->drain(mark->stream, mark.get());
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
  if (GpuCode code; driver_state()->fails(code)) return code;
  const EventPointer found = find_event(event);
  const rt::GpuStreamObject* into = driver_state()->find(stream);
  if (found == nullptr || into == nullptr || into->is_capturing) return kGpuInvalidHandle;
  const std::shared_ptr<Mark> mark = found->last;
  if (mark == nullptr || mark->is_reached || mark->stream == stream) return kGpuSuccess;
  return driver_state()->enqueue(
      stream, [mark] { return driver_state()->drain(mark->stream, mark.get()); });
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

}  // namespace

void add_event_functions(rt::GpuDriver& table) {
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_synchronize = event_synchronize;
  table.event_query = event_query;
  table.stream_wait_event = stream_wait_event;
  table.event_elapsed_time = event_elapsed_time;
}

}  // namespace cinch::emulator
