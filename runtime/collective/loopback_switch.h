// What the ranks of a loopback world share: messages under way, matched in order between two ranks,
// and the time that each takes on the links.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collective/loopback.h"

namespace cinch::rt {

class LoopbackWorld::Switch {
 public:
  Switch(std::uint32_t world, LinkShape shape);

  std::uint32_t world() const { return world_; }
  bool is_shaped() const { return shape_.is_shaped(); }

  /// Sends. Sender and receiver match by the tag, which is unique among messages between them.
  void send(std::uint32_t from, std::uint32_t to, std::uint64_t tag,
            std::span<const std::uint8_t> bytes);
  void receive(std::uint32_t from, std::uint32_t to, std::uint64_t tag,
               std::span<std::uint8_t> room);

  /// Copies a message that has arrived to the receiver, whose thread calls this. Returns whether
  /// the message was taken. Errors: Internal (sender and receiver disagree about the size), that of
  /// abandon.
  Result<bool> take(std::uint32_t from, std::uint32_t to, std::uint64_t tag);
  /// Has the receiver taken the message that the caller sent? Errors: that of abandon.
  Result<bool> is_taken(std::uint32_t from, std::uint32_t to, std::uint64_t tag);

  /// abandon and leave return when nobody copies from the rank's memory any more.
  void abandon(std::uint32_t rank, const Error& why);
  void leave(std::uint32_t rank);
  std::optional<Error> gone(std::uint32_t rank);
  /// Waits until something was begun for the rank, taken from it or abandoned since it saw `seen`,
  /// until an awaited message arrives, until wake, or for `most`.
  void pause(std::uint32_t rank, std::uint64_t seen, std::chrono::microseconds most);
  void wake(std::uint32_t rank);
  std::uint64_t num_events(std::uint32_t rank);

 private:
  // A message that one side or both have begun, until it is taken.
  struct Message {
    std::uint64_t tag = 0;
    std::span<const std::uint8_t> bytes;
    std::span<std::uint8_t> room;
    bool is_sent = false, is_awaited = false;
    LinkClock::time_point arrival;
  };
  // Messages from one rank to another: as many as there are exchanges at once.
  using Way = std::vector<Message>;

  struct Rank {
    std::optional<Error> gone;          // set if it sends and takes nothing any more
    std::uint32_t num_copied_from = 0;  // messages that are being copied from its memory
    std::condition_variable changed;
    std::uint64_t num_events = 0;
    bool is_woken = false;
    LinkClock::time_point sleeps_until;  // while in pause; else in the past
  };

  Way& way(std::uint32_t from, std::uint32_t to) { return ways_[from * world_ + to]; }
  static Message* find(Way& way, std::uint64_t tag);
  static Message& find_or_add(Way& way, std::uint64_t tag);
  LinkClock::time_point arrival_of(std::uint32_t from, std::uint32_t to, std::size_t bytes);
  void note_event(std::uint32_t rank);
  LinkClock::time_point next_arrival(std::uint32_t rank);
  /// Cancels what the rank has sent and nobody took. Ranks that do not need it go on: their
  /// exchanges may be the end of a step that has succeeded.
  void withdraw(std::uint32_t rank, Error why);

  const std::uint32_t world_;
  const LinkShape shape_;
  std::mutex mutex_;
  std::vector<Way> ways_;
  std::vector<LinkTime> out_, in_;  // by rank
  std::vector<Rank> ranks_;
};

}  // namespace cinch::rt
