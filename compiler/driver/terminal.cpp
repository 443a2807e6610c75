// Terminals and progress; see terminal.h.
#include "compiler/driver/terminal.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace cinch::driver {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{500};
constexpr std::chrono::milliseconds kBetweenUpdates{100};

bool wants_colour(int descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_refused = refused != nullptr && *refused != '\0';
  const bool is_dumb = terminal != nullptr && std::string(terminal) == "dumb";
  return isatty(descriptor) && !is_refused && !is_dumb;
}

}  // namespace

bool colour_on_output() {
  return wants_colour(STDOUT_FILENO);
}
bool colour_on_errors() {
  return wants_colour(STDERR_FILENO);
}

Progress::Progress(std::string what)
    : what_(std::move(what)), is_terminal_(isatty(STDERR_FILENO)), start_(Clock::now()) {}

Progress::~Progress() {
  clear();
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (!is_terminal_ || now - start_ < kPatience || now - last_ < kBetweenUpdates) return;
  last_ = now;
  is_shown_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (total == 0) {
    std::fprintf(stderr, "\r\033[K%s … %.0f s", what_.c_str(), seconds);
  } else {
    std::fprintf(stderr, "\r\033[K%s %3.0f %% (%llu of %llu), %.0f s", what_.c_str(),
                 100.0 * static_cast<double>(done) / static_cast<double>(total),
                 static_cast<unsigned long long>(done), static_cast<unsigned long long>(total),
                 seconds);
  }
  std::fflush(stderr);
}

void Progress::clear() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
  is_shown_ = false;
}

}  // namespace cinch::driver
