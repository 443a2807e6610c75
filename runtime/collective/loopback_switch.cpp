// Messages between ranks in memory. The receiver copies outside of the lock: nobody else accesses a
// message that both sides have begun before it is marked as taken.
#include "runtime/collective/loopback_switch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cinch::rt {
namespace {

LinkClock::duration duration_of(double seconds) {
  // A year is long enough for "never", and can be added without overflow.
  constexpr double kMost = 3e7;
  seconds = std::min(seconds, kMost);
  return std::chrono::duration_cast<LinkClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

LoopbackWorld::Switch::Switch(std::uint32_t world, LinkShape shape)
    : world_(world),
      shape_(shape),
      ways_(std::size_t{world} * world),
      out_(world),
      in_(world),
      ranks_(world) {
  constexpr std::size_t kUsual = 8;  // messages between two ranks at once
  for (Way& way : ways_) way.reserve(kUsual);
}

LoopbackWorld::Switch::Message* LoopbackWorld::Switch::find(Way& way, std::uint64_t tag) {
  const auto found = std::ranges::find(way, tag, &Message::tag);
  return found == way.end() ? nullptr : &*found;
}

LoopbackWorld::Switch::Message& LoopbackWorld::Switch::find_or_add(Way& way, std::uint64_t tag) {
  if (Message* const found = find(way, tag)) return *found;
  way.push_back({.tag = tag});
  return way.back();
}

LinkClock::time_point LoopbackWorld::Switch::arrival_of(std::uint32_t from, std::uint32_t to,
                                                        std::size_t bytes) {
  const LinkClock::time_point now = LinkClock::now();
  if (!shape_.is_shaped()) return now;
  const auto on_link = duration_of(
      shape_.bytes_per_second > 0 ? static_cast<double>(bytes) / shape_.bytes_per_second : 0);
  const LinkClock::time_point is_out = out_[from].take(now, now, on_link);
  const auto reaches = is_out - on_link + duration_of(shape_.latency_seconds);
  return in_[to].take(now, reaches, on_link);
}

void LoopbackWorld::Switch::note_event(std::uint32_t rank) {
  ++ranks_[rank].num_events;
  ranks_[rank].changed.notify_all();
}

void LoopbackWorld::Switch::send(std::uint32_t from, std::uint32_t to, std::uint64_t tag,
                                 std::span<const std::uint8_t> bytes) {
  const std::lock_guard lock(mutex_);
  Message& sent = find_or_add(way(from, to), tag);
  sent.bytes = bytes;
  sent.is_sent = true;
  sent.arrival = arrival_of(from, to, bytes.size());
  if (!shape_.is_shaped()) {
    note_event(to);
  } else if (sent.is_awaited && sent.arrival < ranks_[to].sleeps_until) {
    ranks_[to].changed.notify_all();
  }
}

void LoopbackWorld::Switch::receive(std::uint32_t from, std::uint32_t to, std::uint64_t tag,
                                    std::span<std::uint8_t> room) {
  const std::lock_guard lock(mutex_);
  Message& awaited = find_or_add(way(from, to), tag);
  awaited.room = room;
  awaited.is_awaited = true;
}

Result<bool> LoopbackWorld::Switch::take(std::uint32_t from, std::uint32_t to, std::uint64_t tag) {
  std::unique_lock lock(mutex_);
  // The receiver has begun the message, and only the receiver can end it.
  const Message found = *find(way(from, to), tag);
  if (const auto& gone = ranks_[from].gone; gone && !found.is_sent) {
    return tl::unexpected<Error>(*gone);
  }
  if (!found.is_sent || LinkClock::now() < found.arrival) return false;
  if (found.bytes.size() != found.room.size()) {
    return fail(ErrorKind::Internal, fmt::format("rank {} sends {} bytes where rank {} expects {}",
                                                 from, found.bytes.size(), to, found.room.size()));
  }
  ++ranks_[from].num_copied_from;
  lock.unlock();
  if (!found.bytes.empty()) {
    std::memcpy(found.room.data(), found.bytes.data(), found.bytes.size());
  }
  lock.lock();
  --ranks_[from].num_copied_from;
  Way& between = way(from, to);
  *find(between, tag) = between.back();
  between.pop_back();
  note_event(from);
  return true;
}

Result<bool> LoopbackWorld::Switch::is_taken(std::uint32_t from, std::uint32_t to,
                                             std::uint64_t tag) {
  const std::lock_guard lock(mutex_);
  if (find(way(from, to), tag) == nullptr) return true;
  if (const auto& gone = ranks_[to].gone) return tl::unexpected<Error>(*gone);
  return false;
}

void LoopbackWorld::Switch::abandon(std::uint32_t rank, const Error& why) {
  withdraw(rank, {ErrorKind::Cancelled, gave_up(rank, why.message), why.native_code});
}

void LoopbackWorld::Switch::leave(std::uint32_t rank) {
  withdraw(rank, {ErrorKind::Cancelled, fmt::format("rank {} has left", rank)});
}

std::optional<Error> LoopbackWorld::Switch::gone(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  return ranks_[rank].gone;
}

void LoopbackWorld::Switch::withdraw(std::uint32_t rank, Error why) {
  std::unique_lock lock(mutex_);
  if (!ranks_[rank].gone) ranks_[rank].gone = std::move(why);
  for (std::uint32_t to = 0; to < world_; ++to) {
    for (Message& message : way(rank, to)) message.is_sent = false;
  }
  for (std::uint32_t each = 0; each < world_; ++each) note_event(each);
  ranks_[rank].changed.wait(lock, [&] { return ranks_[rank].num_copied_from == 0; });
}

std::uint64_t LoopbackWorld::Switch::num_events(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  return ranks_[rank].num_events;
}

void LoopbackWorld::Switch::wake(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  ranks_[rank].is_woken = true;
  ranks_[rank].changed.notify_all();
}

LinkClock::time_point LoopbackWorld::Switch::next_arrival(std::uint32_t rank) {
  LinkClock::time_point next = LinkClock::time_point::max();
  for (std::uint32_t from = 0; from < world_; ++from) {
    for (const Message& message : way(from, rank)) {
      if (message.is_sent && message.is_awaited) next = std::min(next, message.arrival);
    }
  }
  return next;
}

void LoopbackWorld::Switch::pause(std::uint32_t rank, std::uint64_t seen,
                                  std::chrono::microseconds most) {
  std::unique_lock lock(mutex_);
  Rank& own = ranks_[rank];
  const LinkClock::time_point end = LinkClock::now() + most;
  while (own.num_events == seen && !own.is_woken) {
    own.sleeps_until = std::min(end, next_arrival(rank));
    if (own.sleeps_until <= LinkClock::now()) break;
    own.changed.wait_until(lock, own.sleeps_until);
  }
  own.is_woken = false;
  own.sleeps_until = {};
}

}  // namespace cinch::rt
