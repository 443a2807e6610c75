// The `cinch` command: the parser as a whole, every way in which a command can end, and the report
// of a bug. Only this file, command_tree.cpp and the files of arguments/ see the parser's library.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <system_error>

#include "compiler/driver/arguments/help.h"
#include "compiler/driver/arguments/shared_options.h"
#include "compiler/driver/command_tree.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "compiler/driver/target.h"
#include "runtime/core/check.h"
#include "runtime/core/files/file_bytes.h"

namespace cinch::driver {
namespace {

bool is_setting(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) return false;
  return std::ranges::all_of(word.substr(0, equals),
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// `--set a=1 b=2` becomes `--set a=1 --set b=2`, and so does `--with`. The parser itself cannot
// take several values here: it would also take a program that follows.
std::vector<std::string> with_each_setting_named(std::span<const std::string> words) {
  std::vector<std::string> named;
  const char* option = nullptr;  // of the values that follow
  bool is_first_value = false;
  for (const std::string& word : words) {
    const auto begins = [&word](std::string_view name) {
      return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '=');
    };
    const char* const begun = begins("--set") ? "--set" : begins("--with") ? "--with" : nullptr;
    if (begun == nullptr && option != nullptr && !is_first_value) {
      if (!is_setting(word)) option = nullptr;
      if (option != nullptr) named.emplace_back(option);
    }
    if (begun != nullptr) option = begun;
    is_first_value = begun != nullptr && word == begun;
    named.push_back(word);
  }
  return named;
}

// The parser would make two words of `[1.0, 2.0]`, but not if a blank follows.
void keep_lists_whole(std::vector<std::string>& words) {
  for (std::string& word : words) {
    if (word.starts_with('[') && word.ends_with(']')) word += ' ';
  }
}

}  // namespace

ExitCode run_command_line(int argc, char** argv) {
  CLI::App app("Cinch compiles programs that compress gradients.", "cinch");
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "shows this help");
  app.set_version_flag("--version", std::string("cinch ") + kVersion, "prints the version");
  app.require_subcommand(1);
  app.footer(
      "`cinch help COMMAND` shows the options of a command. Further pages are\n"
      "`cinch help environment` and `cinch help exit-codes`.");
  Action action;
  Registry registry{app, action, std::vector<std::string>(argv, argv + argc)};
  OutputSettings& settings = output_settings();
  settings.is_json = asks_for_json(registry.words);
  settings.shows_progress = is_first_rank();
  settings.prints_json_errors = is_first_rank() && !is_started_by_command();
  // In the order of --help: what people need first comes first.
  add_list(registry);
  add_explain(registry);
  add_run(registry);
  add_eval(registry);
  add_report(registry);
  add_bench(registry);
  add_check(registry);
  add_format(registry);
  add_verify(registry);
  add_lsp(registry);
  add_sync(registry);
  add_probe(registry);
  add_plan(registry);
  add_simulate(registry);
  add_encode(registry);
  add_decode(registry);
  add_build(registry);
  add_doctor(registry);
  add_tune(registry);
  add_cache(registry);
  add_completion(registry);
  add_opt(registry);
  add_help(registry);
  add_man_pages(registry);
  add_output_options(app);
  find_command(app, std::span(registry.words).subspan(1));
  std::vector<std::string> words =
      with_each_setting_named(std::span(registry.words).subspan(std::min(argc, 1)));
  if (!words.empty() && words.front() == "eval") keep_lists_whole(words);
  std::ranges::reverse(words);  // as the parser takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success))
      refuse_words(app, error);
    app.exit(error);  // prints help, or the version
    return ExitCode::Done;
  }
  return action();
}

}  // namespace cinch::driver

// The `cinch` command: every way in which a command can end, and the report of a bug.

namespace {

using cinch::driver::ExitCode;

int end_with_lost_output(ExitCode code, const std::string& reason) {
  cinch::driver::print_aside("error: cannot write to standard output: {}\n", reason);
  return static_cast<int>(code == ExitCode::Done ? ExitCode::AtFault : code);
}

int end_with(ExitCode code, const std::string& message) {
  cinch::driver::end_if_interrupted();
  if (!message.empty()) cinch::driver::print_aside("error: {}\n", message);
  try {
    if (code != ExitCode::Done) cinch::driver::print_failure(code, message);
  } catch (const std::exception& error) {
    cinch::driver::print_aside("error: no JSON is printed: {}\n", error.what());
  }
  const std::string unwritten = cinch::driver::flush_output();
  return unwritten.empty() ? static_cast<int>(code) : end_with_lost_output(code, unwritten);
}

std::string now_as_text(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

// Writes what is needed to find a bug of Cinch to a text file in the folder for temporary files.
// Returns its path, or "" if that failed, too.
std::string write_report(const cinch::InternalError& error,
                         const std::vector<std::string>& command_line) {
  std::string text = fmt::format("Cinch {}\nTime: {}\nCommand:", cinch::driver::kVersion,
                                 now_as_text("%Y-%m-%d %H:%M:%S UTC"));
  for (const std::string& word : command_line) text += " '" + word + "'";
  text += fmt::format("\n\n{}\nWhere: {}\nStage: {}\n", error.what(), error.location(),
                      error.stage().empty() ? "not known" : error.stage());
  if (!error.program().empty()) text += "\nProgram:\n" + error.program() + "\n";
  try {
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    // A new file, whose name nobody can guess and put a link at.
    std::string path =
        folder / fmt::format("cinch-report-{}-XXXXXX.txt", now_as_text("%Y%m%d-%H%M%S"));
    const int file = ::mkostemps(path.data(), 4, O_CLOEXEC);
    if (file < 0) return "";
    const int problem = cinch::rt::write_all(
        file, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    ::close(file);
    return problem == 0 ? path : "";
  } catch (const std::exception&) {
    return "";
  }
}

int end_with_fault(const cinch::InternalError& error, const std::vector<std::string>& words) {
  if (error.kind() == cinch::InternalErrorKind::Limitation) {
    return end_with(ExitCode::Unavailable, "not in this version: " + error.message());
  }
  const std::string report = write_report(error, words);
  const std::string place =
      report.empty() ? "no report could be written" : "a report is in " + report;
  return end_with(
      ExitCode::Internal,
      std::string(error.what()) + "\nThis is a fault of Cinch, not of the program; " + place);
}

// For output that cannot be written, and for exhausted resources of the machine.
int end_with_system_error(const std::system_error& error, const std::vector<std::string>& words) {
  if (std::ferror(stdout) != 0) {
    return end_with_lost_output(ExitCode::AtFault, error.code().message());
  }
  const bool is_shortage = error.code() == std::errc::too_many_files_open ||
                           error.code() == std::errc::too_many_files_open_in_system ||
                           error.code() == std::errc::resource_unavailable_try_again ||
                           error.code() == std::errc::not_enough_memory;
  if (is_shortage) return end_with(ExitCode::Unavailable, error.what());
  return end_with_fault({cinch::InternalErrorKind::Bug, error.what(), "main"}, words);
}

}  // namespace

int main(int argc, char** argv) {
  cinch::driver::hold_standard_streams();
  cinch::driver::install_interrupt_handler();
  try {
    const ExitCode code = cinch::driver::run_command_line(argc, argv);
    return end_with(code, "");
  } catch (const cinch::driver::CommandError& error) {
    return end_with(error.code(), error.what());
  } catch (const cinch::service::ServiceError& error) {
    return end_with(cinch::driver::exit_code_of(error.fault()), error.what());
  } catch (const cinch::InternalError& error) {
    return end_with_fault(error, std::vector<std::string>(argv, argv + argc));
  } catch (const std::bad_alloc&) {
    // Ends at once: objects that ran out of memory are half made and may not be destroyed.
    end_with(ExitCode::Unavailable, "not enough memory");
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(ExitCode::Unavailable));
  } catch (const std::system_error& error) {
    return end_with_system_error(error, std::vector<std::string>(argv, argv + argc));
  } catch (const std::exception& error) {
    const cinch::InternalError fault(cinch::InternalErrorKind::Bug, error.what(), "main");
    return end_with_fault(fault, std::vector<std::string>(argv, argv + argc));
  }
}
