// Signal handling; only async-signal-safe calls in the handler. See interrupt.h.
#include "compiler/driver/process/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "compiler/driver/process/progress.h"
#include "compiler/driver/ranks/child_process.h"

namespace cinch::driver {

namespace {

constexpr std::size_t kMaxPath = 4096;
char unfinished_file[kMaxPath] = "";
std::atomic<bool> has_unfinished_file{false};
std::atomic<bool> is_cancelled{false};
std::atomic<int> num_scopes{0};
std::atomic<int> signal_seen{0};

void end_by(int signal) {
  erase_progress_at_end();
  if (has_unfinished_file) unlink(unfinished_file);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void handle(int signal) {
  signal_seen = signal;
  const bool is_first = !is_cancelled.exchange(true);
  if (num_scopes == 0 || !is_first) end_by(signal);
}

// A request that mpirun, or the command that starts ranks, passes on, perhaps several times. It
// never ends work that reads the flag. (A compiler in the process uses SIGUSR1 itself.)
void handle_request(int signal) {
  signal_seen = signal;
  is_cancelled = true;
  if (num_scopes == 0) end_by(signal);
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = handle_request;
  const bool is_rank = is_started_by_mpirun() || is_started_by_command();
  if (is_rank) sigaction(SIGUSR2, &action, nullptr);
  // A file that exceeds the process's limit then shows as an error of the write.
  std::signal(SIGXFSZ, SIG_IGN);
}

Cancellable::Cancellable() {
  ++num_scopes;
}
Cancellable::~Cancellable() {
  --num_scopes;
}
const std::atomic<bool>* Cancellable::flag() {
  return &is_cancelled;
}

void end_if_interrupted() {
  if (is_cancelled) end_by(signal_seen);
}

void set_unfinished_file(const std::string& path) {
  has_unfinished_file = false;
  if (path.empty() || path.size() >= kMaxPath) return;
  std::memcpy(unfinished_file, path.c_str(), path.size() + 1);
  has_unfinished_file = true;
}

}  // namespace cinch::driver
