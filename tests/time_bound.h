// A time limit for code that may hang: it ends the test's process, and says what the test was
// doing.
#pragma once
#include <csignal>
#include <cstring>
#include <string_view>

#include <unistd.h>

namespace cinch {

/// One at a time in a process, on any thread. If a launcher has started the process, its end also
/// ends the other ranks.
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

  /// Restarts the limit. From one thread.
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
