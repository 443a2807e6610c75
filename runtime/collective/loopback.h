// Ranks that are threads of one process and move bytes in memory. Messages may be slowed to a
// latency and a bandwidth, so that plans can be measured without a network.
#pragma once

#include "runtime/collective/transport.h"

namespace cinch::rt {

// The occupied time of one direction of a link.

using LinkClock = std::chrono::steady_clock;

class LinkTime {
 public:
  using Point = LinkClock::time_point;

  /// Takes `length` of the free time from `earliest` on, in parts if other messages occupy time
  /// between: a link never rests while a message waits for it. Returns the end of the last part.
  /// Forgets everything before `now`.
  Point take(Point now, Point earliest, LinkClock::duration length);

 private:
  struct Span {
    Point begin, end;
  };
  void add(const Span& span);

  std::vector<Span> taken_;  // in order; none touches another
};

/// Every rank has one link to a switch, which sends and receives at the same time. A message leaves
/// after the messages that its rank began before, and arrives when its last byte has passed the
/// receiver's link. 0: takes no time.
struct LinkShape {
  double latency_seconds = 0;
  double bytes_per_second = 0;
  bool is_shaped() const { return latency_seconds > 0 || bytes_per_second > 0; }
};

class LoopbackWorld {
 public:
  explicit LoopbackWorld(std::uint32_t world, LinkShape shape = {});
  ~LoopbackWorld();

  /// The transport of one rank, for one thread at a time. A rank has at most one at a time, and
  /// this outlives it. Floats are joined in rank order. All-reduce is a reduce-scatter and an
  /// all-gather; collectives send as many bytes as rings would; a broadcast goes from its root to
  /// each rank.
  std::unique_ptr<Transport> transport(std::uint32_t rank);

 private:
  friend class LoopbackTransport;
  class Switch;
  std::unique_ptr<Switch> switch_;
};

}  // namespace cinch::rt
