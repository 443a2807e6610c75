// Bodies of standard_streams.h.
#include "compiler/driver/process/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

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

}  // namespace cinch::driver
