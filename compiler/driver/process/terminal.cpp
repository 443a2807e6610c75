// Terminals and progress; see terminal.h.
#include "compiler/driver/process/terminal.h"

#include <sys/ioctl.h>
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

std::size_t output_width() {
  winsize size{};
  const bool is_known = isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return is_known ? size.ws_col : 0;
}

std::size_t text_width() {
  constexpr std::size_t kPlainWidth = 80;
  const std::size_t width = output_width();
  return width == 0 ? kPlainWidth : width;
}

std::string fit_to_width(const std::string& line, std::size_t width) {
  std::size_t num_chars = 0, last = 0;  // `last`: where the character at `width - 1` begins
  for (std::size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0u) == 0x80u) continue;  // within a character
    if (++num_chars == width) last = i;
  }
  return width == 0 || num_chars <= width ? line : line.substr(0, last) + "…";
}

Progress::Progress(std::string what, Reader reader)
    : what_(std::move(what)),
      is_wanted_(reader == Reader::People && isatty(STDERR_FILENO) != 0),
      start_(Clock::now()) {}

Progress::~Progress() {
  clear();
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (!is_wanted_ || now - start_ < kPatience || now - last_ < kBetweenUpdates) return;
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
  std::fflush(stderr);
  is_shown_ = false;
}

}  // namespace cinch::driver
