// Ctrl-C. Outside of a Cancellable scope it ends the process at once; inside one it sets a flag
// that the work reads. In both cases a file that is being written beside its target is removed, so
// that no partial output is ever seen.
#pragma once
#include <atomic>
#include <string>

namespace cinch::driver {

// Installs the handler of SIGINT and SIGTERM, in ranks that were launched that of SIGUSR2, and
// ignores SIGXFSZ; once, before any work.
void install_interrupt_handler();

// While one lives, a signal sets `flag` and the work goes on until it looks; a second signal ends
// the process.
class Cancellable {
 public:
  Cancellable();
  ~Cancellable();
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;
  static const std::atomic<bool>* flag();
};

// Ends the process as the signal would have, after the work was cancelled. Does nothing if no
// signal came.
void end_if_interrupted();

// The unfinished file that a signal removes; "" for none. One at a time.
void set_unfinished_file(const std::string& path);

}  // namespace cinch::driver
