// What the ranks of a loopback world share: messages under way, matched in order between two ranks,
// and the time that each takes on the links.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>

#include "runtime/collective/loopback.h"
#include "runtime/collective/message_transport.h"

namespace cinch::rt {
namespace {

LinkClock::duration duration_of(double seconds) {
  // A year is long enough for "never", and can be added without overflow.
  constexpr double kMost = 3e7;
  seconds = std::min(seconds, kMost);
  return std::chrono::duration_cast<LinkClock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

// Messages between ranks in memory. The receiver copies outside of the lock: nobody else accesses a
// message that both sides have begun before it is marked as taken.
class LoopbackWorld::Switch {
 public:
  Switch(std::uint32_t world, LinkShape shape)
      : world_(world),
        shape_(shape),
        ways_(std::size_t{world} * world),
        out_(world),
        in_(world),
        ranks_(world) {
    constexpr std::size_t kUsual = 8;  // messages between two ranks at once
    for (Way& way : ways_) way.reserve(kUsual);
  }

  std::uint32_t world() const { return world_; }
  bool is_shaped() const { return shape_.is_shaped(); }

  /// Sends. Sender and receiver match by the tag, which is unique among messages between them.
  void send(std::uint32_t from, std::uint32_t to, std::uint64_t tag,
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

  void receive(std::uint32_t from, std::uint32_t to, std::uint64_t tag,
               std::span<std::uint8_t> room) {
    const std::lock_guard lock(mutex_);
    Message& awaited = find_or_add(way(from, to), tag);
    awaited.room = room;
    awaited.is_awaited = true;
  }

  /// Copies a message that has arrived to the receiver, whose thread calls this. Returns whether
  /// the message was taken. Errors: Internal (sender and receiver disagree about the size), that of
  /// abandon.
  Result<bool> take(std::uint32_t from, std::uint32_t to, std::uint64_t tag) {
    std::unique_lock lock(mutex_);
    // The receiver has begun the message, and only the receiver can end it.
    const Message found = *find(way(from, to), tag);
    if (const auto& gone = ranks_[from].gone; gone && !found.is_sent) {
      return tl::unexpected<Error>(*gone);
    }
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
    Way& between = way(from, to);
    *find(between, tag) = between.back();
    between.pop_back();
    note_event(from);
    return true;
  }

  /// Has the receiver taken the message that the caller sent? Errors: that of abandon.
  Result<bool> is_taken(std::uint32_t from, std::uint32_t to, std::uint64_t tag) {
    const std::lock_guard lock(mutex_);
    if (find(way(from, to), tag) == nullptr) return true;
    if (const auto& gone = ranks_[to].gone) return tl::unexpected<Error>(*gone);
    return false;
  }

  /// abandon and leave return when nobody copies from the rank's memory any more.
  void abandon(std::uint32_t rank, const Error& why) {
    withdraw(rank, {ErrorKind::Cancelled, gave_up(rank, why.message), why.native_code});
  }
  void leave(std::uint32_t rank) {
    withdraw(rank, {ErrorKind::Cancelled, fmt::format("rank {} has left", rank)});
  }
  std::optional<Error> gone(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    return ranks_[rank].gone;
  }

  /// Waits until something was begun for the rank, taken from it or abandoned since it saw `seen`,
  /// until an awaited message arrives, until wake, or for `most`.
  void pause(std::uint32_t rank, std::uint64_t seen, std::chrono::microseconds most) {
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

  void wake(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    ranks_[rank].is_woken = true;
    ranks_[rank].changed.notify_all();
  }

  std::uint64_t num_events(std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    return ranks_[rank].num_events;
  }

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
  static Message* find(Way& way, std::uint64_t tag) {
    const auto found = std::ranges::find(way, tag, &Message::tag);
    return found == way.end() ? nullptr : &*found;
  }

  static Message& find_or_add(Way& way, std::uint64_t tag) {
    if (Message* const found = find(way, tag)) return *found;
    way.push_back({.tag = tag});
    return way.back();
  }

  LinkClock::time_point arrival_of(std::uint32_t from, std::uint32_t to, std::size_t bytes) {
    const LinkClock::time_point now = LinkClock::now();
    if (!shape_.is_shaped()) return now;
    const auto on_link = duration_of(
        shape_.bytes_per_second > 0 ? static_cast<double>(bytes) / shape_.bytes_per_second : 0);
    const LinkClock::time_point is_out = out_[from].take(now, now, on_link);
    const auto reaches = is_out - on_link + duration_of(shape_.latency_seconds);
    return in_[to].take(now, reaches, on_link);
  }

  void note_event(std::uint32_t rank) {
    ++ranks_[rank].num_events;
    ranks_[rank].changed.notify_all();
  }

  LinkClock::time_point next_arrival(std::uint32_t rank) {
    LinkClock::time_point next = LinkClock::time_point::max();
    for (std::uint32_t from = 0; from < world_; ++from) {
      for (const Message& message : way(from, rank)) {
        if (message.is_sent && message.is_awaited) next = std::min(next, message.arrival);
      }
    }
    return next;
  }

  /// Cancels what the rank has sent and nobody took. Ranks that do not need it go on: their
  /// exchanges may be the end of a step that has succeeded.
  void withdraw(std::uint32_t rank, Error why) {
    std::unique_lock lock(mutex_);
    if (!ranks_[rank].gone) ranks_[rank].gone = std::move(why);
    for (std::uint32_t to = 0; to < world_; ++to) {
      for (Message& message : way(rank, to)) message.is_sent = false;
    }
    for (std::uint32_t each = 0; each < world_; ++each) note_event(each);
    ranks_[rank].changed.wait(lock, [&] { return ranks_[rank].num_copied_from == 0; });
  }

  const std::uint32_t world_;
  const LinkShape shape_;
  std::mutex mutex_;
  std::vector<Way> ways_;
  std::vector<LinkTime> out_, in_;  // by rank
  std::vector<Rank> ranks_;
};

// One rank of a loopback world.

LinkTime::Point LinkTime::take(Point now, Point earliest, LinkClock::duration length) {
  std::erase_if(taken_, [now](const Span& span) { return span.end < now; });
  Point at = earliest;
  while (length > LinkClock::duration::zero()) {
    const auto next = std::ranges::find_if(taken_, [at](const Span& s) { return s.end > at; });
    const bool is_free = next == taken_.end() || next->begin > at;
    if (!is_free) {
      at = next->end;
      continue;
    }
    const Point end = next == taken_.end() ? at + length : std::min(at + length, next->begin);
    length -= end - at;
    add({at, end});
    at = end;
  }
  return at;
}

void LinkTime::add(const Span& span) {
  auto next =
      std::ranges::find_if(taken_, [&](const Span& each) { return each.end >= span.begin; });
  if (next == taken_.end() || next->begin > span.end) {
    taken_.insert(next, span);
    return;
  }
  next->begin = std::min(next->begin, span.begin);
  next->end = std::max(next->end, span.end);
  const auto after = next + 1;
  if (after == taken_.end() || after->begin > next->end) return;
  next->end = after->end;
  taken_.erase(after);
}

class LoopbackTransport : public MessageTransport {
 public:
  LoopbackTransport(LoopbackWorld::Switch& ways, std::uint32_t rank)
      : MessageTransport(rank, ways.world()), switch_(ways) {}
  ~LoopbackTransport() override { switch_.leave(rank()); }

  std::string_view name() const override { return "loopback"; }

  Result<Ticket> start(const Exchange& exchange) override {
    has_news_ = true;
    return begin_exchange(exchange);
  }

  Result<bool> test(Ticket ticket) override {
    return take_end(ticket, is_under_way(ticket) ? look_at_all() : Status(Ok{}));
  }
  void pause(std::chrono::microseconds most) override { switch_.pause(rank(), seen_, most); }
  bool wake() override { return switch_.wake(rank()), true; }
  void abandon(const Error& why) override { switch_.abandon(rank(), why); }
  std::optional<Error> last_words(std::uint32_t of) const override { return switch_.gone(of); }

 private:
  // The switch knows messages by their tags.
  std::uint64_t begin_send(std::uint32_t to, std::uint64_t tag, Bytes bytes) override {
    switch_.send(rank(), to, tag, bytes);
    return 0;
  }
  std::uint64_t begin_receive(std::uint32_t from, std::uint64_t tag, Room room) override {
    switch_.receive(from, rank(), tag, room);
    return 0;
  }
  Result<bool> is_over(const Leg& leg) override {
    return leg.is_sent ? switch_.is_taken(rank(), leg.peer, leg.tag)
                       : switch_.take(leg.peer, rank(), leg.tag);
  }
  // Tests all exchanges once for each event, however many the caller asks about. If links have a
  // shape, messages arrive without an event.
  Status look_at_all() {
    constexpr std::chrono::microseconds kLook{20};
    const std::uint64_t events = switch_.num_events(rank());
    const LinkClock::time_point now = LinkClock::now();
    const bool is_due = switch_.is_shaped() && now - looked_ >= kLook;
    if (events == seen_ && !has_news_ && !is_due) return Ok{};
    seen_ = events;
    looked_ = now;
    has_news_ = true;  // until all have been tested
    Status status = advance_all();
    if (status) has_news_ = false;
    return status;
  }

  LoopbackWorld::Switch& switch_;
  std::uint64_t seen_ = 0;
  bool has_news_ = false;  // something was begun since all exchanges were tested
  LinkClock::time_point looked_;
};
LoopbackWorld::LoopbackWorld(std::uint32_t world, LinkShape shape)
    : switch_(std::make_unique<Switch>(world, shape)) {}
LoopbackWorld::~LoopbackWorld() = default;

std::unique_ptr<Transport> LoopbackWorld::transport(std::uint32_t rank) {
  return std::make_unique<LoopbackTransport>(*switch_, rank);
}

}  // namespace cinch::rt
