// The parser as a whole. Only this file, command_tree.cpp and the files of arguments/ see it
// (CLI11).
#include "compiler/driver/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <span>

#include "compiler/driver/arguments/add_commands.h"
#include "compiler/driver/arguments/help.h"
#include "compiler/driver/process/json_output.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/child_process.h"
#include "compiler/driver/version.h"

namespace cinch::driver {

namespace {

bool is_setting(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  if (std::isdigit(static_cast<unsigned char>(word.front())) != 0) return false;
  return std::ranges::all_of(word.substr(0, equals),
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

// `--set a=1 b=2` becomes `--set a=1 --set b=2`. The parser itself cannot take several values here:
// it would also take a program that follows.
std::vector<std::string> with_each_setting_named(std::span<const std::string> words) {
  std::vector<std::string> named;
  bool is_in_set = false, is_first_value = false;
  for (const std::string& word : words) {
    const bool begins = word == "--set" || word.starts_with("--set=");
    if (!begins && is_in_set && !is_first_value) {
      is_in_set = is_setting(word);
      if (is_in_set) named.emplace_back("--set");
    }
    if (begins) is_in_set = true;
    is_first_value = word == "--set";
    named.push_back(word);
  }
  return named;
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
  add_report(registry);
  add_bench(registry);
  add_check(registry);
  add_format(registry);
  add_verify(registry);
  add_lsp(registry);
  add_sync(registry);
  add_probe(registry);
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
