// Bodies of world.h.
#include "tests/collective/nccl/double/world.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "runtime/core/lang.h"
#include "tests/collective/nccl/double/control.h"

namespace cinch::nccl_double {
namespace {

using rt::NcclOperation;
using rt::NcclType;

std::atomic<void (*)(void*, std::size_t)> g_note = nullptr;

template <typename T>
T joined(NcclOperation operation, T a, T b) {
  if (operation == NcclOperation::Min) return std::min(a, b);
  if (operation == NcclOperation::Max) return std::max(a, b);
  return lang::add(a, b);
}

struct HalfFormat {
  static float read(lang::u16 stored) { return lang::from_f16(stored); }
  static lang::u16 write(float value) { return lang::to_f16(value); }
};
struct BrainFormat {
  static float read(lang::u16 stored) { return lang::from_bf16(stored); }
  static lang::u16 write(float value) { return lang::to_bf16(value); }
};
template <typename T>
struct PlainFormat {
  static T read(T stored) { return stored; }
  static T write(T value) { return value; }
};

// From the last rank to the first: nobody may rely on another order.
template <typename Stored, typename Format>
void reduce_as(const std::vector<const std::uint8_t*>& inputs, NcclOperation operation,
               std::size_t count, std::uint8_t* output) {
  const auto element = [](const std::uint8_t* from, std::size_t i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof(Stored), sizeof(Stored));
    return Format::read(stored);
  };
  for (std::size_t i = 0; i < count; ++i) {
    auto value = element(inputs.back(), i);
    for (std::size_t rank = inputs.size() - 1; rank-- > 0;) {
      value = joined(operation, value, element(inputs[rank], i));
    }
    if (operation == NcclOperation::Average) {
      value = static_cast<decltype(value)>(value / static_cast<float>(inputs.size()));
    }
    const Stored stored = Format::write(value);
    std::memcpy(output + i * sizeof(Stored), &stored, sizeof(Stored));
  }
}

void reduce(const std::vector<const std::uint8_t*>& inputs, NcclType type, NcclOperation operation,
            std::size_t count, std::uint8_t* output) {
  switch (type) {
    case NcclType::Int8:
      return reduce_as<std::int8_t, PlainFormat<std::int8_t>>(inputs, operation, count, output);
    case NcclType::Uint8:
      return reduce_as<std::uint8_t, PlainFormat<std::uint8_t>>(inputs, operation, count, output);
    case NcclType::Int32:
      return reduce_as<std::int32_t, PlainFormat<std::int32_t>>(inputs, operation, count, output);
    case NcclType::Uint32:
      return reduce_as<std::uint32_t, PlainFormat<std::uint32_t>>(inputs, operation, count, output);
    case NcclType::Int64:
      return reduce_as<std::int64_t, PlainFormat<std::int64_t>>(inputs, operation, count, output);
    case NcclType::Uint64:
      return reduce_as<std::uint64_t, PlainFormat<std::uint64_t>>(inputs, operation, count, output);
    case NcclType::Float16:
      return reduce_as<lang::u16, HalfFormat>(inputs, operation, count, output);
    case NcclType::Float32:
      return reduce_as<float, PlainFormat<float>>(inputs, operation, count, output);
    case NcclType::Float64:
      return reduce_as<double, PlainFormat<double>>(inputs, operation, count, output);
    case NcclType::Bfloat16:
      return reduce_as<lang::u16, BrainFormat>(inputs, operation, count, output);
  }
}

}  // namespace

std::size_t type_bytes(NcclType type) {
  switch (type) {
    case NcclType::Int8:
    case NcclType::Uint8:
      return 1;
    case NcclType::Float16:
    case NcclType::Bfloat16:
      return 2;
    case NcclType::Int32:
    case NcclType::Uint32:
    case NcclType::Float32:
      return 4;
    case NcclType::Int64:
    case NcclType::Uint64:
    case NcclType::Float64:
      return 8;
  }
  return 0;
}

World::Joined World::join(int rank, int size, int device, bool may_share_devices) {
  const std::lock_guard lock(mutex_);
  const bool is_twice = std::ranges::find(devices_, device) != devices_.end();
  const auto own = static_cast<std::size_t>(rank);
  const Joined result = size != static_cast<int>(devices_.size()) ? Joined::OtherSize
                        : devices_[own] >= 0                      ? Joined::TwiceTheRank
                        : is_twice && !may_share_devices          ? Joined::TwiceTheDevice
                                                                  : Joined::Yes;
  if (result == Joined::Yes) devices_[own] = device;
  is_broken_ = is_broken_ || result != Joined::Yes;
  moved_.notify_all();
  return result;
}

bool World::is_complete() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(devices_, -1) == devices_.end();
}

bool World::is_broken() const {
  const std::lock_guard lock(mutex_);
  return is_broken_;
}

void World::wait_until_complete() const {
  std::unique_lock lock(mutex_);
  moved_.wait(lock,
              [this] { return is_broken_ || std::ranges::find(devices_, -1) == devices_.end(); });
}

World::Key World::key_of(int rank, const Call& call) {
  int from = -1, to = -1;
  if (call.is_message()) {
    const bool sends = call.kind == Call::Kind::Send;
    from = sends ? rank : call.peer;
    to = sends ? call.peer : rank;
  }
  return {from, to, numbers_[{rank, from, to}]++};
}

bool World::do_match(const Meeting& meeting) {
  const Call& first = *meeting.calls.front();
  return std::ranges::all_of(meeting.calls, [&first](const Call* each) {
    if (each->is_message() && first.is_message()) return each->count == first.count;
    return each->kind == first.kind && each->count == first.count && each->type == first.type &&
           each->operation == first.operation && each->peer == first.peer;
  });
}

void World::perform(const Meeting& meeting) {
  const std::vector<const Call*>& calls = meeting.calls;
  const Call& first = *calls.front();
  const std::size_t size_bytes = first.count * type_bytes(first.type);
  std::vector<const std::uint8_t*> inputs;
  for (const Call* each : calls) inputs.push_back(each->input);
  // Outputs may be inputs.
  std::vector<std::uint8_t> all;
  switch (first.kind) {
    case Call::Kind::Send:
    case Call::Kind::Receive:
      std::memmove(calls[1]->output, calls[0]->input, size_bytes);
      return;
    case Call::Kind::Broadcast:
      for (const Call* each : calls) {
        std::memmove(each->output, inputs[static_cast<std::size_t>(first.peer)], size_bytes);
      }
      return;
    case Call::Kind::Reduce:
      all.resize(size_bytes);
      reduce(inputs, first.type, first.operation, first.count, all.data());
      std::memcpy(calls[static_cast<std::size_t>(first.peer)]->output, all.data(), size_bytes);
      return;
    case Call::Kind::AllReduce:
      all.resize(size_bytes);
      reduce(inputs, first.type, first.operation, first.count, all.data());
      for (const Call* each : calls) std::memcpy(each->output, all.data(), size_bytes);
      return;
    case Call::Kind::AllGather:
      for (const std::uint8_t* input : inputs) all.insert(all.end(), input, input + size_bytes);
      for (const Call* each : calls) std::memcpy(each->output, all.data(), all.size());
      return;
    case Call::Kind::ReduceScatter:
      all.resize(size_bytes * calls.size());
      reduce(inputs, first.type, first.operation, first.count * calls.size(), all.data());
      for (std::size_t rank = 0; rank < calls.size(); ++rank) {
        std::memcpy(calls[rank]->output, all.data() + rank * size_bytes, size_bytes);
      }
      return;
  }
}

void World::on_write(void (*note)(void*, std::size_t)) {
  g_note = note;
}

void World::note_writes(const Meeting& meeting) {
  void (*const note)(void*, std::size_t) = g_note;
  if (note == nullptr) return;
  for (std::size_t rank = 0; rank < meeting.calls.size(); ++rank) {
    const Call& call = *meeting.calls[rank];
    const bool is_other_root =
        call.kind == Call::Kind::Reduce && call.peer != static_cast<int>(rank);
    if (call.kind == Call::Kind::Send || is_other_root) continue;
    const std::size_t parts = call.kind == Call::Kind::AllGather ? meeting.calls.size() : 1;
    note(call.output, parts * call.count * type_bytes(call.type));
  }
}

std::shared_ptr<World::Meeting> World::come(int rank, const Call& call) {
  const Key key = key_of(rank, call);
  std::shared_ptr<Meeting>& meeting = meetings_[key];
  if (meeting == nullptr) {
    meeting = std::make_shared<Meeting>();
    meeting->calls.resize(call.is_message() ? 2 : devices_.size());
  }
  const std::size_t place = !call.is_message()              ? static_cast<std::size_t>(rank)
                            : call.kind == Call::Kind::Send ? 0
                                                            : 1;
  meeting->calls[place] = &call;
  auto held = meeting;
  if (++meeting->num_come < meeting->calls.size()) return held;
  // A rank that gave up leaves a gap.
  const bool is_whole = std::ranges::find(held->calls, nullptr) == held->calls.end();
  held->is_done = is_whole && do_match(*held);
  if (held->is_done) {
    perform(*held);
    note_writes(*held);
  }
  if (held->is_done) meetings_.erase(key);
  moved_.notify_all();
  return held;
}

bool World::connect(int rank, const std::vector<Call>& calls, const bool& has_given_up) {
  std::unique_lock lock(mutex_);
  for (const Call& call : calls) {
    if (call.is_message()) wanted_connections_.emplace(rank, call.peer);
  }
  moved_.notify_all();
  moved_.wait(lock, [&] {
    return has_given_up || std::ranges::all_of(calls, [&](const Call& call) {
             return !call.is_message() || wanted_connections_.contains({call.peer, rank});
           });
  });
  return !has_given_up;
}

void World::run(int rank, const std::vector<Call>& calls, const bool& has_given_up) {
  for (const Call& call : calls) {
    if (call.fault == kDoubleLate) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::unique_lock lock(mutex_);
  std::vector<std::shared_ptr<Meeting>> meetings;
  bool hangs = false;
  for (const Call& call : calls) {
    hangs = hangs || call.fault == kDoubleHangs || call.fault == kDoubleFailsLater;
    if (!hangs && !has_given_up) meetings.push_back(come(rank, call));
  }
  moved_.wait(lock, [&] {
    return has_given_up || (!hangs && std::ranges::all_of(meetings, [](const auto& each) {
             return each->is_done;
           }));
  });
  // The calls are destroyed when this returns.
  for (const auto& meeting : meetings) {
    if (meeting->is_done) continue;
    for (const Call& call : calls) std::ranges::replace(meeting->calls, &call, nullptr);
  }
}

void World::give_up(bool& has_given_up) {
  const std::lock_guard lock(mutex_);
  has_given_up = true;
  moved_.notify_all();
}

void World::leave(int rank, bool waits) {
  std::unique_lock lock(mutex_);
  left_.insert(rank);
  moved_.notify_all();
  moved_.wait(lock, [&] {
    const auto num_missing = static_cast<std::size_t>(std::ranges::count(devices_, -1));
    return !waits || left_.size() == devices_.size() - num_missing;
  });
}

}  // namespace cinch::nccl_double
