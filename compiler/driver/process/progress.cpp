// A thread draws the line while work runs; see progress.h.
#include "compiler/driver/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/driver/process/terminal.h"

namespace cinch::driver {

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
    thread_ = std::thread([this] { draw_until_end(); });
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
  void draw_until_end() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kBetweenLooks, [&] { return is_ending_; })) draw();
  }

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
    const std::size_t width = errors_width();
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

void erase_progress_at_end() {
  is_process_ending = true;
  if (!is_line_shown) return;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kErase.data(), kErase.size());
}

}  // namespace cinch::driver
