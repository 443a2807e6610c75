// What is taken of the time of one direction of a link.
#pragma once
#include <chrono>
#include <vector>

namespace cinch::rt {

using LinkClock = std::chrono::steady_clock;

class LinkTime {
 public:
  using Point = LinkClock::time_point;

  /// Takes so much of what is free from `earliest` on, in parts where others have taken what lies
  /// between: a link does not rest while a message waits for it. Gives the end of the last part.
  /// What lies before `now` is forgotten.
  Point take(Point now, Point earliest, LinkClock::duration length);

 private:
  struct Span {
    Point begin, end;
  };
  void add(const Span& span);

  std::vector<Span> taken_;  // in order; none touches another
};

}  // namespace cinch::rt
