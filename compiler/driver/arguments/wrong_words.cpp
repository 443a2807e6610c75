#include "compiler/driver/arguments/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/driver/command_tree.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/report/text.h"
#include "runtime/core/nearest_name.h"

namespace cinch::driver {

std::string path_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

namespace {

[[noreturn]] void refuse(const CLI::App& app, const std::string& message) {
  throw CommandError(ExitCode::Usage, fmt::format("{}\nsee: {} --help", message, path_of(app)));
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// The innermost command that the parser entered.
const CLI::App& parsed_command(const CLI::App& app) {
  const std::vector<CLI::App*> inner = app.get_subcommands();
  return inner.empty() ? app : parsed_command(*inner.back());
}

struct UnknownWord {
  const CLI::App* command;
  std::string word;
};

// The first word that no command accepted, and the command that should have.
std::optional<UnknownWord> find_unknown(const CLI::App& app, bool wants_option) {
  for (const std::string& word : app.remaining()) {
    const bool is_option = word.starts_with('-') && word != "-" && word != "--";
    if (is_option == wants_option && word != "--") return UnknownWord{&app, word};
  }
  for (const CLI::App* inner : app.get_subcommands()) {
    if (auto found = find_unknown(*inner, wants_option)) return found;
  }
  return std::nullopt;
}

// Names without dashes, since dashes would make any two names similar.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  return names;
}

// May return the word itself, which may be valid in another place.
std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  if (std::ranges::find(names, word) != names.end()) return word;
  return std::string(nearest_name(word, {names.begin(), names.end()}));
}

// The name as given; empty if there is none.
std::string given_program(const CLI::App& command) {
  const CLI::Option* const option = command.get_option_no_throw("program");
  return option == nullptr || option->count() == 0 ? std::string() : option->results().front();
}

// What the user may have meant: another option, or a parameter of a program. Empty if unknown.
std::string meant_instead(const CLI::App& command, const std::string& option) {
  const std::string plain = option.substr(option.find_first_not_of('-'));
  const std::string near = nearest(plain, option_names(command));
  if (!near.empty()) return "--" + near;
  if (command.get_option_no_throw("--set") == nullptr) return {};
  const std::string parameter = nearest(plain, library_parameters(given_program(command)));
  return parameter.empty() ? std::string() : "--set " + parameter + "=VALUE";
}

// An option with one value that was given several times.
const CLI::Option* find_repeated(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const bool has_one = option->get_items_expected_max() == 1 && !option->get_positional();
    if (has_one && option->count() > 1) return option;
  }
  return nullptr;
}

// Options of every command are options of none if they are before the command.
bool is_option_of_commands(const CLI::App& app, const std::string& option) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  return std::ranges::any_of(commands, [&](const CLI::App* command) {
    return command->get_option_no_throw(option) != nullptr;
  });
}

[[noreturn]] void refuse_option(const UnknownWord& unknown) {
  const std::string option = unknown.word.substr(0, unknown.word.find('='));
  if (is_option_of_commands(*unknown.command, option)) {
    refuse(*unknown.command, fmt::format("'{}' goes behind the command: {} COMMAND {}", option,
                                         path_of(*unknown.command), option));
  }
  const std::string meant = meant_instead(*unknown.command, option);
  refuse(*unknown.command, fmt::format("unknown option '{}'{}", option, did_you_mean(meant)));
}

[[noreturn]] void refuse_command(const CLI::App& app, const std::string& word,
                                 std::span<const std::string> pages) {
  std::vector<std::string> names(pages.begin(), pages.end());
  for (const CLI::App* command : commands_of(app)) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  const std::string near = nearest(word, names);
  refuse(app, fmt::format("unknown command '{}'{}", word, did_you_mean(near)));
}

}  // namespace

const CLI::App* find_command(const CLI::App& app, std::span<const std::string> words,
                             std::span<const std::string> pages) {
  const std::vector<const CLI::App*> commands = commands_of(app);
  if (commands.empty() || words.empty() || words.front().starts_with('-')) return &app;
  for (const CLI::App* command : commands) {
    if (command->get_name() == words.front()) return find_command(*command, words.subspan(1));
  }
  refuse_command(app, words.front(), pages);
}

namespace {

// In words of ours: "--input: 1 required G.npy missing", "program is required".
std::string plain_text(const CLI::App& command, const std::string& text) {
  constexpr std::string_view kNoValue = ": 1 required ", kLastWord = " missing",
                             kRequired = " is required";
  const std::size_t name_end = text.find(kNoValue);
  if (name_end != std::string::npos && text.ends_with(kLastWord)) {
    const std::size_t value = name_end + kNoValue.size();
    return fmt::format("{} needs a value: {}", text.substr(0, name_end),
                       text.substr(value, text.size() - kLastWord.size() - value));
  }
  if (!text.ends_with(kRequired) || text.starts_with('-')) return text;
  const std::string name = text.substr(0, text.size() - kRequired.size());
  const CLI::Option* const positional = command.get_option_no_throw(name);
  if (positional == nullptr) return text;
  const std::string type = positional->get_type_name();
  return fmt::format("no {} is given", type.find('{') == std::string::npos ? type : name);
}

}  // namespace

void refuse_words(const CLI::App& app, const CLI::ParseError& error) {
  if (const auto unknown = find_unknown(app, /*wants_option=*/true)) refuse_option(*unknown);
  if (const auto unknown = find_unknown(app, /*wants_option=*/false)) {
    refuse(*unknown->command, fmt::format("'{}': no argument is expected here", unknown->word));
  }
  const CLI::App& command = parsed_command(app);
  if (const CLI::Option* option = find_repeated(command)) {
    const std::size_t times = option->count();
    refuse(command, fmt::format("{} is given {}", option->get_name(),
                                times == 2 ? "twice" : fmt::format("{} times", times)));
  }
  if (!commands_of(command).empty()) refuse(command, "a command is required");
  refuse(command, plain_text(command, error.what()));
}

}  // namespace cinch::driver
