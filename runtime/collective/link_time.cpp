// Bodies of link_time.h.
#include "runtime/collective/link_time.h"

#include <algorithm>

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

}  // namespace cinch::rt
