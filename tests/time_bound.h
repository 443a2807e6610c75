// A bound on the time of what may hang: a test that is past it ends its process, with a word on
// what it was at.
#pragma once
#include <csignal>
#include <cstring>
#include <string_view>

#include <unistd.h>

namespace cinch {

/// One at a time in a process, of any thread. Where a launcher has started the process, its end is
/// that of the other ranks.
class TimeBound {
 public:
  TimeBound(unsigned seconds, std::string_view what) : seconds_(seconds) {
    std::signal(SIGALRM, [](int) {
      constexpr char kText[] = "\ntakes too long: ";
      (void)!::write(STDERR_FILENO, kText, sizeof kText - 1);
      (void)!::write(STDERR_FILENO, text(), std::strlen(text()));
      (void)!::write(STDERR_FILENO, "\n", 1);
      ::_exit(1);
    });
    restart(what);
  }
  ~TimeBound() { ::alarm(0); }
  TimeBound(const TimeBound&) = delete;
  TimeBound& operator=(const TimeBound&) = delete;

  /// The time begins anew. From one thread.
  void restart(std::string_view what) const {
    text()[what.copy(text(), kRoom - 1)] = '\0';
    ::alarm(seconds_);
  }

 private:
  static constexpr std::size_t kRoom = 200;
  static char* text() {
    static char text[kRoom];
    return text;
  }
  unsigned seconds_;
};

}  // namespace cinch
