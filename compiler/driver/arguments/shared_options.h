// Options that several sub-commands share, and how a sub-command is added to the parser.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <limits>
#include <memory>

#include "compiler/driver/options.h"
#include "compiler/driver/process/files.h"

namespace cinch::driver {
using Action = std::function<ExitCode()>;

// Adds sub-commands. A sub-command's options live as long as the parser; `action` runs the chosen
// one.
struct Registry {
  CLI::App& app;
  Action& action;
  std::vector<std::string> words;  // of the command line

  template <typename Options>
  CLI::App* add(const std::string& name, const std::string& description,
                ExitCode (*run)(const Options&), const std::shared_ptr<Options>& options) {
    CLI::App* command = app.add_subcommand(name, description);
    // The callback must outlive the registry of a command's own sub-commands.
    command->callback(
        [chosen = &action, run, options] { *chosen = [run, options] { return run(*options); }; });
    return command;
  }
};

// For an option with a whole number. Reads 1e6, 64k and 1Gi (and 64KiB with the unit "B"), and
// passes plain digits to CLI11, which itself would accept -1 for an unsigned number.
CLI::Validator count_between(std::int64_t least, std::uint64_t most, std::string_view unit);
// For numbers that may be fractions. NaN never lies in a range.
CLI::Validator between(double least, double most);
// For a word of these. The message names the one that was probably meant.
CLI::Validator one_of(const std::vector<std::string>& words);
// For durations, from 0 seconds to some days.
CLI::Validator seconds();

template <typename T>
struct CountOf {
  using Type = T;
};
template <typename T>
struct CountOf<std::optional<T>> {
  using Type = T;
};
template <typename T>
struct CountOf<std::vector<T>> {
  using Type = T;
};
template <typename T>
inline constexpr std::uint64_t kLargestOf = std::numeric_limits<typename CountOf<T>::Type>::max();

// An option with a value, which --help calls `value_name`.
template <typename T>
CLI::Option* add_value(CLI::App* command, const std::string& names, T& value,
                       const std::string& value_name, const std::string& description) {
  return command->add_option(names, value, description)->type_name(value_name);
}
// An option for one of these words.
CLI::Option* add_word(CLI::App* command, const std::string& names, std::string& value,
                      const std::vector<std::string>& words, const std::string& description);
// An option for a duration, from 0 seconds to some days.
CLI::Option* add_seconds(CLI::App* command, const std::string& names, double& value,
                         const std::string& description);

// Every option that takes a whole number is added by one of these two.
template <typename T>
CLI::Option* add_count(CLI::App* command, const std::string& names, T& value,
                       const std::string& description, std::int64_t least = 0,
                       std::uint64_t most = kLargestOf<T>) {
  return add_value(command, names, value, "COUNT", description)
      ->transform(count_between(least, most, ""));
}
template <typename T>
CLI::Option* add_bytes(CLI::App* command, const std::string& names, T& value,
                       const std::string& description, std::int64_t least = 0,
                       std::uint64_t most = kLargestOf<T>) {
  return add_value(command, names, value, "BYTES", description)
      ->transform(count_between(least, most, "B"));
}

void add_states(CLI::App* command, codegen::StateUpdate& states);
void add_headers(CLI::App* command, rt::HeaderSearch& headers);
void add_bindings(CLI::App* command, std::vector<std::string>& bindings);
// Several programs, or all of the library, and how they are compiled.
template <typename Options>
void add_library_programs(CLI::App* command, Options& options) {
  add_value(command, "programs", options.programs, "PROGRAM",
            "programs; without them, all of the standard library");
  add_bindings(command, options.bindings);
  add_headers(command, options.headers);
  add_states(command, options.states);
}
// The program, its parameters, and how it is compiled.
void add_program(CLI::App* command, ProgramOptions& options);
void add_execution(CLI::App* command, ExecutionOptions& options);
// `columns`: of a matrix gradient.
void add_columns(CLI::App* command, std::optional<std::int64_t>& columns);
void add_json(CLI::App* command, bool& json);
// --quiet and --color, for every command below `app`.
void add_output_options(CLI::App& app);

// The parser's sub-commands. Each function adds one of them with its options.

// program_commands.cpp: commands that work on a program.
void add_check(Registry& registry);
void add_format(Registry& registry);
void add_explain(Registry& registry);
void add_run(Registry& registry);
void add_eval(Registry& registry);
void add_encode(Registry& registry);
void add_decode(Registry& registry);
void add_build(Registry& registry);
void add_opt(Registry& registry);

// rank_commands.cpp: commands that test programs and measure them.
void add_verify(Registry& registry);
void add_bench(Registry& registry);
void add_report(Registry& registry);
void add_tune(Registry& registry);

// program_commands.cpp: commands about what is installed, and for shells and editors.
void add_list(Registry& registry);
void add_doctor(Registry& registry);
void add_cache(Registry& registry);
void add_lsp(Registry& registry);
void add_completion(Registry& registry);

// rank_commands.cpp: commands that work on several ranks.
void add_sync(Registry& registry);
void add_probe(Registry& registry);
void add_plan(Registry& registry);
void add_simulate(Registry& registry);

// `cinch help [COMMAND…]` prints what `cinch COMMAND… --help` does. It also has pages about topics
// that all commands share.
void add_help(Registry& registry);
// `cinch man-pages DIR` writes the manual pages. The command is for builds and packages; --help
// hides it.
void add_man_pages(Registry& registry);

}  // namespace cinch::driver
