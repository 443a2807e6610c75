// The standard streams: what they are, and how the command line wants them used. The shell may have
// closed them or sent them to a full disk.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "runtime/core/log.h"

namespace cinch::driver {
enum class Colour : std::uint8_t { Auto, Always, Never };

// Options of every command; the parser sets them before the command runs.
struct OutputSettings {
  Colour colour = Colour::Auto;
  bool is_quiet = false;  // standard error has only errors
  bool is_json = false;   // standard output is JSON, for programs
  // If one user started several ranks, only the first shows progress. It prints an error as JSON
  // unless a command started the ranks, which then prints one itself.
  bool shows_progress = true, prints_json_errors = true;
};
OutputSettings& output_settings();

// Colour::Auto: a terminal has colour, unless NO_COLOR is set (https://no-color.org) or TERM is
// "dumb".
bool colour_on_errors();

// Width of the terminal that a standard stream is; 0 if none is, or if it is unknown.
std::size_t output_width();
// Width of tables and help: the terminal's, else 80.
std::size_t text_width();
// Width of sentences: the terminal's, else unlimited, for tools that search the text.
std::size_t sentence_width();
// `line`, in UTF-8, cut to `width` characters with "…" at the end; unchanged if `width` is 0.
std::string fit_to_width(const std::string& line, std::size_t width);

// Gives closed streams a descriptor that can neither be read nor written, so that no file that is
// opened later takes their place. Call it once, before anything is opened.
void hold_standard_streams();

// Flushes standard output. Returns why some of the command's output could not be written; empty if
// all of it was.
std::string flush_output();

// Prints text for people to standard output. Names of files and programs may hold control
// characters, which are escaped here (rt::visible_text). Print with fmt::print only what other
// programs read: JSON, source text, scripts.
template <typename... Args>
void print_text(fmt::format_string<Args...> format, Args&&... args) {
  fmt::print("{}", rt::visible_text(fmt::format(format, std::forward<Args>(args)...)));
}

// The same to standard error. It ignores failures there, since these messages are not the command's
// output.
template <typename... Args>
void print_aside(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(rt::visible_text(fmt::format(format, std::forward<Args>(args)...)).c_str(), stderr);
}

// Shows the progress of long work: one line on standard error that is rewritten in place and
// removed at the end.

// Shows `what` and the elapsed time once the work has taken 0.3 s, until it is destroyed. Only on a
// terminal, and never with --quiet or --json. If several are long enough, the newest is shown:
// "compiling topk" within "programs measured".
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `done` of `total` steps; total 0 if it is not known.
  void update(std::uint64_t done, std::uint64_t total);
  // Removes the line until the next update. Call it before you print anything else.
  void clear();

  struct Task;

 private:
  std::unique_ptr<Task> task_;  // null if nothing is shown
};

// Hides progress while it lives. For output that other code prints.
class ProgressPause {
 public:
  ProgressPause();
  ~ProgressPause();
  ProgressPause(const ProgressPause&) = delete;
  ProgressPause& operator=(const ProgressPause&) = delete;
};

// Ctrl-C. Outside of a Cancellable scope it ends the process at once; inside one it sets a flag
// that the work reads. In both cases the temporary file of an unfinished output is removed, so that
// no partial output is ever visible.

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
