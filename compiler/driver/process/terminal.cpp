#include "compiler/driver/process/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/core/environment.h"

namespace cinch::driver {

void hold_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // open() takes the lowest free descriptor, which is this one.
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) ::open("/", O_PATH);
  }
}

std::string flush_output() {
  if (std::fflush(stdout) != 0) return std::strerror(errno);
  return std::ferror(stdout) != 0 ? "an earlier write failed" : "";
}

namespace {

constexpr std::size_t kPlainWidth = 80;

bool wants_colour(int descriptor) {
  const Colour chosen = output_settings().colour;
  if (chosen != Colour::Auto) return chosen == Colour::Always;
  const bool is_refused = !rt::environment_variable("NO_COLOR").empty();
  const bool is_dumb = rt::environment_variable("TERM") == "dumb";
  return isatty(descriptor) != 0 && !is_refused && !is_dumb;
}

std::size_t width_of(int descriptor) {
  winsize size{};
  const bool is_known = isatty(descriptor) != 0 && ioctl(descriptor, TIOCGWINSZ, &size) == 0;
  return is_known ? size.ws_col : 0;
}

}  // namespace

OutputSettings& output_settings() {
  static OutputSettings settings;
  return settings;
}

bool colour_on_errors() {
  return wants_colour(STDERR_FILENO);
}

std::size_t output_width() {
  return width_of(STDOUT_FILENO);
}
std::size_t errors_width() {
  return width_of(STDERR_FILENO);
}
std::size_t text_width() {
  const std::size_t width = output_width();
  return width == 0 ? kPlainWidth : width;
}

std::size_t sentence_width() {
  constexpr std::size_t kEndless = std::size_t{1} << 30;
  const std::size_t width = output_width();
  return width == 0 ? kEndless : width;
}

std::string fit_to_width(const std::string& line, std::size_t width) {
  std::size_t num_chars = 0, last = 0;  // `last`: where the character at `width - 1` begins
  for (std::size_t i = 0; i < line.size(); ++i) {
    // In the middle of a character
    if ((static_cast<unsigned char>(line[i]) & 0xc0u) == 0x80u) continue;
    if (++num_chars == width) last = i;
  }
  return width == 0 || num_chars <= width ? line : line.substr(0, last) + "…";
}

}  // namespace cinch::driver
