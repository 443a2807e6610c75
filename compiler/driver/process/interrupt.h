// Ctrl-C. Outside of a Cancellable scope it ends the process at once; inside one it sets a flag
// that the work reads. In both cases the temporary file of an unfinished output is removed, so that
// no partial output is ever visible.
#pragma once
#include <atomic>
#include <string>

namespace cinch::driver {

// Installs the handler of SIGINT and SIGTERM, and in launched ranks that of SIGUSR2; ignores
// SIGXFSZ. Call it once, before any work.
void install_interrupt_handler();

// While this lives, a signal sets `flag` and the work goes on until it reads it; a second signal
// ends the process.
class Cancellable {
 public:
  Cancellable();
  ~Cancellable();
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;
  static const std::atomic<bool>* flag();
};

// After the work was cancelled, ends the process as the signal would have. Does nothing if no
// signal came.
void end_if_interrupted();

// Sets the unfinished file that a signal removes; "" for none. One at a time.
void set_unfinished_file(const std::string& path);

}  // namespace cinch::driver
