// Messages between ranks in memory. The receiver copies, outside of the lock: nobody else touches a
// message that both sides have begun before it is marked as taken.
#include "runtime/collective/loopback_switch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cinch::rt {
namespace {

constexpr std::size_t kFirstRing = 8;

tl::unexpected<Error> has_left(std::uint32_t rank) {
  return fail(ErrorKind::Cancelled, fmt::format("rank {} has left", rank));
}

LinkClock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<LinkClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

LoopbackWorld::Switch::Switch(std::uint32_t world, LinkShape shape)
    : world_(world),
      shape_(shape),
      ways_(std::size_t{world} * world),
      out_free_(world),
      in_free_(world),
      ranks_(world) {}

LoopbackWorld::Switch::Message& LoopbackWorld::Switch::message(Way& way, std::uint64_t number) {
  if (way.ring.empty()) way.ring.resize(kFirstRing);
  while (number - way.first >= way.ring.size()) {
    std::vector<Message> larger(2 * way.ring.size());
    for (std::uint64_t i = way.first; i < way.first + way.ring.size(); ++i) {
      larger[i % larger.size()] = way.ring[i % way.ring.size()];
    }
    way.ring = std::move(larger);
  }
  return way.ring[number % way.ring.size()];
}

LinkClock::time_point LoopbackWorld::Switch::arrival_of(std::uint32_t from, std::uint32_t to,
                                                        std::size_t bytes) {
  const LinkClock::time_point now = LinkClock::now();
  if (!shape_.is_shaped()) return now;
  const auto on_link =
      duration_of(shape_.bytes_per_second > 0 ? static_cast<double>(bytes) / shape_.bytes_per_second
                                              : 0);
  const LinkClock::time_point leaves = std::max(now, out_free_[from]);
  out_free_[from] = leaves + on_link;
  const auto reaches = std::max(leaves + duration_of(shape_.latency_seconds), in_free_[to]);
  in_free_[to] = reaches + on_link;
  return in_free_[to];
}

void LoopbackWorld::Switch::note_event() {
  ++num_events_;
  changed_.notify_all();
}

std::uint64_t LoopbackWorld::Switch::send(std::uint32_t from, std::uint32_t to,
                                          std::span<const std::uint8_t> bytes) {
  const std::lock_guard lock(mutex_);
  Way& between = way(from, to);
  Message& sent = message(between, between.num_sent);
  sent.bytes = bytes;
  sent.is_sent = true;
  sent.arrival = arrival_of(from, to, bytes.size());
  note_event();
  return between.num_sent++;
}

std::uint64_t LoopbackWorld::Switch::receive(std::uint32_t from, std::uint32_t to,
                                             std::span<std::uint8_t> room) {
  const std::lock_guard lock(mutex_);
  Way& between = way(from, to);
  Message& awaited = message(between, between.num_awaited);
  awaited.room = room;
  awaited.is_awaited = true;
  return between.num_awaited++;
}

Status LoopbackWorld::Switch::check_fault() const {
  if (fault_) return tl::unexpected<Error>(*fault_);
  return Ok{};
}

Result<bool> LoopbackWorld::Switch::take(std::uint32_t from, std::uint32_t to,
                                         std::uint64_t number) {
  std::unique_lock lock(mutex_);
  if (Status status = check_fault(); !status) return tl::unexpected<Error>(status.error());
  Way& between = way(from, to);
  if (number < between.first) return true;
  const Message found = message(between, number);
  if (!found.is_sent && ranks_[from].has_left) return has_left(from);
  if (!found.is_sent || LinkClock::now() < found.arrival) return false;
  if (found.bytes.size() != found.room.size()) {
    return fail(ErrorKind::Internal,
                fmt::format("rank {} sends {} bytes where rank {} expects {}", from,
                            found.bytes.size(), to, found.room.size()));
  }
  ++ranks_[from].num_copied_from;
  lock.unlock();
  if (!found.bytes.empty()) {
    std::memcpy(found.room.data(), found.bytes.data(), found.bytes.size());
  }
  lock.lock();
  --ranks_[from].num_copied_from;
  message(between, number).is_taken = true;
  while (between.first < between.num_awaited && message(between, between.first).is_taken) {
    message(between, between.first) = Message();
    ++between.first;
  }
  note_event();
  return true;
}

Result<bool> LoopbackWorld::Switch::is_taken(std::uint32_t from, std::uint32_t to,
                                             std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  Way& between = way(from, to);
  if (number < between.first || message(between, number).is_taken) return true;
  if (Status status = check_fault(); !status) return tl::unexpected<Error>(status.error());
  if (ranks_[to].has_left) return has_left(to);
  return false;
}

void LoopbackWorld::Switch::abandon(std::uint32_t rank, const Error& why) {
  std::unique_lock lock(mutex_);
  if (!fault_) {
    fault_ = Error{ErrorKind::Cancelled, fmt::format("rank {} gave up: {}", rank, why.message),
                   why.native_code};
  }
  withdraw(rank, lock);
}

void LoopbackWorld::Switch::leave(std::uint32_t rank) {
  std::unique_lock lock(mutex_);
  ranks_[rank].has_left = true;
  withdraw(rank, lock);
}

void LoopbackWorld::Switch::withdraw(std::uint32_t rank, std::unique_lock<std::mutex>& lock) {
  for (std::uint32_t to = 0; to < world_; ++to) {
    Way& between = way(rank, to);
    for (std::uint64_t i = between.first; i < between.num_sent; ++i) {
      message(between, i).is_sent = false;
    }
  }
  note_event();
  changed_.wait(lock, [&] { return ranks_[rank].num_copied_from == 0; });
}

std::uint64_t LoopbackWorld::Switch::num_events() {
  const std::lock_guard lock(mutex_);
  return num_events_;
}

void LoopbackWorld::Switch::pause(std::uint64_t seen, std::chrono::microseconds most) {
  // A shaped message arrives without an event: who waits for one looks often.
  constexpr std::chrono::microseconds kLook{50};
  std::unique_lock lock(mutex_);
  if (shape_.is_shaped()) most = std::min(most, kLook);
  changed_.wait_for(lock, most, [&] { return num_events_ != seen; });
}

}  // namespace cinch::rt
