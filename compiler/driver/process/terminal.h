// What the standard streams are, and how the command line says to use them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace cinch::driver {

enum class Colour : std::uint8_t { Auto, Always, Never };

// What every command takes; the parser sets them before the command runs.
struct OutputSettings {
  Colour colour = Colour::Auto;
  bool is_quiet = false;  // standard error has errors only
  bool is_json = false;   // standard output is for programs
  // Of several ranks that one user has started, the first shows progress. It prints an error as
  // JSON if no command has started the ranks, which then prints one itself.
  bool shows_progress = true, prints_json_errors = true;
};
OutputSettings& output_settings();

// Colour::Auto: a terminal has colour, except where NO_COLOR is set (https://no-color.org) or TERM
// is "dumb".
bool colour_on_errors();

// Columns of the terminal that a standard stream is; 0 where it is none or does not say.
std::size_t output_width();
std::size_t errors_width();
// How wide text for people may be: that of the terminal, else 80.
std::size_t text_width();
// `line`, in UTF-8, cut to `width` characters, the last one "…"; whole where `width` is 0.
std::string fit_to_width(const std::string& line, std::size_t width);

}  // namespace cinch::driver
