// The occupied time of one direction of a link.
#pragma once
#include <chrono>
#include <vector>

namespace cinch::rt {

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

}  // namespace cinch::rt
