// A thread draws the line while work runs.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"

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
  const Colour chosen = output_settings().colour;
  if (chosen != Colour::Auto) return chosen == Colour::Always;
  const bool is_refused = !rt::environment_variable("NO_COLOR").empty();
  const bool is_dumb = rt::environment_variable("TERM") == "dumb";
  return isatty(STDERR_FILENO) != 0 && !is_refused && !is_dumb;
}

std::size_t output_width() {
  return width_of(STDOUT_FILENO);
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

using ProgressClock = std::chrono::steady_clock;

struct Progress::Task {
  std::string what;
  ProgressClock::time_point start = ProgressClock::now();
  std::uint64_t done = 0, total = 0;
  bool is_hidden = false;
};

namespace {

constexpr std::chrono::milliseconds kPatience{300};
constexpr std::chrono::milliseconds kBetweenLooks{100};
constexpr std::string_view kErase = "\r\033[K";

std::atomic<bool> is_line_shown{false};
std::atomic<bool> is_process_ending{false};

class ProgressLine {
 public:
  static ProgressLine& instance() {
    static ProgressLine line;
    return line;
  }

  void begin(Progress::Task& task) {
    const std::scoped_lock whole(lifetime_);
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(&task);
    if (thread_.joinable()) return;
    is_ending_ = false;
    thread_ = std::thread([this] {
      std::unique_lock wait(mutex_);
      while (!wake_.wait_for(wait, kBetweenLooks, [&] { return is_ending_; })) draw();
    });
  }

  void end(Progress::Task& task) {
    const std::scoped_lock whole(lifetime_);
    {
      const std::scoped_lock lock(mutex_);
      std::erase(tasks_, &task);
      erase();
      if (!tasks_.empty()) return;
      is_ending_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void update(Progress::Task& task, std::uint64_t done, std::uint64_t total) {
    const std::scoped_lock lock(mutex_);
    task.done = done;
    task.total = total;
    task.is_hidden = false;
  }

  void hide(Progress::Task& task) {
    const std::scoped_lock lock(mutex_);
    task.is_hidden = true;
    erase();
  }

  void pause(int change) {
    const std::scoped_lock lock(mutex_);
    num_pauses_ += change;
    erase();
  }

 private:
  void draw() {
    const ProgressClock::time_point now = ProgressClock::now();
    const auto shown = std::ranges::find_if(tasks_.rbegin(), tasks_.rend(), [&](const auto* task) {
      return !task->is_hidden && now - task->start >= kPatience;
    });
    if (num_pauses_ > 0 || is_process_ending) return;
    if (shown == tasks_.rend()) return erase();
    std::string text = text_of(**shown, now);
    if (is_line_shown && text == text_) return;
    text_ = std::move(text);
    is_line_shown = true;
    write(std::string(kErase) + text_);
  }

  static std::string text_of(const Progress::Task& task, ProgressClock::time_point now) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - task.start).count();
    const std::string text =
        task.total == 0
            ? fmt::format("{} … {} s", task.what, seconds)
            : fmt::format("{} {:3.0f} % ({} of {}), {} s", task.what,
                          100.0 * static_cast<double>(task.done) / static_cast<double>(task.total),
                          task.done, task.total, seconds);
    const std::size_t width = width_of(STDERR_FILENO);
    return fit_to_width(rt::visible_text(text), width > 1 ? width - 1 : width);
  }

  void erase() {
    if (is_line_shown) write(std::string(kErase));
    is_line_shown = false;
  }

  static void write(const std::string& text) {
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  }

  std::mutex lifetime_;  // guards the thread
  std::mutex mutex_;     // guards all members below
  std::condition_variable wake_;
  std::thread thread_;
  std::vector<Progress::Task*> tasks_;  // the innermost is last
  std::string text_;
  int num_pauses_ = 0;
  bool is_ending_ = false;
};

}  // namespace

Progress::Progress(std::string what) {
  const OutputSettings& settings = output_settings();
  const bool is_wanted = settings.shows_progress && !settings.is_quiet && !settings.is_json;
  if (!is_wanted || isatty(STDERR_FILENO) == 0) return;
  task_ = std::make_unique<Task>();
  task_->what = std::move(what);
  ProgressLine::instance().begin(*task_);
}

Progress::~Progress() {
  if (task_) ProgressLine::instance().end(*task_);
}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (task_) ProgressLine::instance().update(*task_, done, total);
}

void Progress::clear() {
  if (task_) ProgressLine::instance().hide(*task_);
}

ProgressPause::ProgressPause() {
  ProgressLine::instance().pause(1);
}

ProgressPause::~ProgressPause() {
  ProgressLine::instance().pause(-1);
}

// Signal handling; only async-signal-safe calls in the handler.

namespace {

constexpr std::size_t kMaxPath = 4096;
char unfinished_file[kMaxPath] = "";
std::atomic<bool> has_unfinished_file{false};
std::atomic<bool> is_cancelled{false};
std::atomic<int> num_scopes{0};
std::atomic<int> signal_seen{0};

void end_by(int signal) {
  is_process_ending = true;
  if (is_line_shown) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kErase.data(), kErase.size());
  }
  if (has_unfinished_file) unlink(unfinished_file);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = [](int signal) {
    signal_seen = signal;
    const bool is_first = !is_cancelled.exchange(true);
    if (num_scopes == 0 || !is_first) end_by(signal);
  };
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A request that mpirun, or the command that starts ranks, passes on, perhaps several times. It
  // never ends work that reads the flag. (A compiler in the process uses SIGUSR1 itself.)
  action.sa_handler = [](int signal) {
    signal_seen = signal;
    is_cancelled = true;
    if (num_scopes == 0) end_by(signal);
  };
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
