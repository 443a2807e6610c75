// What users read about commands: help texts, and errors about words that no command takes.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class FormatterBase;
class ParseError;
}  // namespace CLI

namespace cinch::driver {

// Formats help texts to the width of the terminal.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// Names of the pages of `cinch help` that are about topics.
std::vector<std::string> help_pages();

// docs/diagnostics.md.
std::string_view diagnostics_text();

// An environment variable that the command, its libraries or the Python package reads.
struct EnvironmentVariable {
  std::string_view name;
  std::string_view meaning;  // one or two sentences
};

// All of them, by topic; tests/lit/driver/environment.test compares them with the sources. `UCX_*`
// stands for all settings of UCX.
std::span<const EnvironmentVariable> environment_variables();

// "cinch cache show".
std::string path_of(const CLI::App& app);

// The command that `words` name ("cache", "show"); ignores words after a command without
// sub-commands. Throws CommandError for a word that should name a command and does not. `pages`:
// other names that the first word may have meant.
const CLI::App* find_command(const CLI::App& app, std::span<const std::string> words,
                             std::span<const std::string> pages = {});

// Throws an error that tells why `app` could not parse the command line. An unknown option comes
// first: it may be the reason why another option is missing.
[[noreturn]] void refuse_words(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cinch::driver
