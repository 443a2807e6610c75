// Messages about words that the parser does not take, with a suggestion.
#pragma once
#include <span>
#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming)
class App;
class ParseError;
}  // namespace CLI

namespace cinch::driver {

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
