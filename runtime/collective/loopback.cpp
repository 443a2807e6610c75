// One rank of a loopback world.
#include "runtime/collective/loopback.h"

#include <algorithm>
#include <chrono>

#include "runtime/collective/loopback_switch.h"
#include "runtime/collective/message_transport.h"

namespace cinch::rt {

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

  Result<Ticket> start(const Exchange& exchange) override;
  Result<bool> test(Ticket ticket) override;
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
  Status look_at_all();

  LoopbackWorld::Switch& switch_;
  std::uint64_t seen_ = 0;
  bool has_news_ = false;  // something was begun since all exchanges were tested
  LinkClock::time_point looked_;
};

Result<Ticket> LoopbackTransport::start(const Exchange& exchange) {
  has_news_ = true;
  return begin_exchange(exchange);
}

// Tests all exchanges once for each event, however many the caller asks about. If links have a
// shape, messages arrive without an event.
Status LoopbackTransport::look_at_all() {
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

Result<bool> LoopbackTransport::test(Ticket ticket) {
  return take_end(ticket, is_under_way(ticket) ? look_at_all() : Status(Ok{}));
}

LoopbackWorld::LoopbackWorld(std::uint32_t world, LinkShape shape)
    : switch_(std::make_unique<Switch>(world, shape)) {}
LoopbackWorld::~LoopbackWorld() = default;

std::unique_ptr<Transport> LoopbackWorld::transport(std::uint32_t rank) {
  return std::make_unique<LoopbackTransport>(*switch_, rank);
}

}  // namespace cinch::rt
