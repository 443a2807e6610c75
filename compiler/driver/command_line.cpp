// The parser as a whole. Only this file, command_tree.cpp and the files of arguments/ see it
// (CLI11).
#include "compiler/driver/command_line.h"

#include <CLI/CLI.hpp>
#include <span>

#include "compiler/driver/arguments/add_commands.h"
#include "compiler/driver/arguments/help.h"
#include "compiler/driver/process/json_output.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/child_process.h"
#include "compiler/driver/version.h"

namespace cinch::driver {

ExitCode run_command_line(int argc, char** argv) {
  CLI::App app("Cinch compiles programs that compress gradients.", "cinch");
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "shows this help");
  app.set_version_flag("--version", std::string("cinch ") + kVersion, "prints the version");
  app.require_subcommand(1);
  app.footer("`cinch help COMMAND` shows the options of a command.");
  Action action;
  Registry registry{app, action, std::vector<std::string>(argv, argv + argc)};
  OutputSettings& settings = output_settings();
  settings.is_json = asks_for_json(registry.words);
  settings.shows_progress = is_first_rank();
  settings.prints_json_errors = is_first_rank() && !is_started_by_command();
  add_check(registry);
  add_format(registry);
  add_explain(registry);
  add_run(registry);
  add_encode(registry);
  add_decode(registry);
  add_build(registry);
  add_opt(registry);
  add_list_and_doctor(registry);
  add_verify(registry);
  add_bench(registry);
  add_report(registry);
  add_tune(registry);
  add_cache(registry);
  add_lsp(registry);
  add_completion(registry);
  add_sync(registry);
  add_probe(registry);
  add_help(registry);
  add_man_pages(registry);
  add_output_options(app);
  find_command(app, std::span(registry.words).subspan(1));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success))
      refuse_words(app, error);
    app.exit(error);  // prints help, or the version
    return ExitCode::Done;
  }
  return action();
}

}  // namespace cinch::driver
