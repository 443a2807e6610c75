// What the command says of words that the parser does not take, with a guess at what was meant.
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

// The command that `words` name ("cache", "show"); words behind a command that has no sub-commands
// are not looked at. Throws CommandError for a word that should name a command and does not.
// `pages`: what the first word may have meant, too.
const CLI::App* find_command(const CLI::App& app, std::span<const std::string> words,
                             std::span<const std::string> pages = {});

// Tells why `app` could not parse the command line. An unknown option is told before anything else:
// it may be why another option is missing.
[[noreturn]] void refuse_words(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cinch::driver
