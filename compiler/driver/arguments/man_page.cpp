// Makes manual pages in the format of man(7).
#include "compiler/driver/arguments/shared_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/arguments/help.h"
#include "compiler/driver/command_tree.h"
#include "compiler/driver/target.h"

namespace cinch::driver {

namespace {

struct ManPage {
  std::string file_name;  // "cinch-run.1"
  std::string text;
};

using Escape = std::pair<char, std::string_view>;
constexpr Escape kEscapes[] = {{'\\', "\\e"},   {'-', "\\-"},   {'`', "\\(ga"},
                               {'\'', "\\(aq"}, {'^', "\\(ha"}, {'~', "\\(ti"}};

// Escapes text, so that no character has a meaning for the formatter.
std::string escaped(std::string_view text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    const auto* const escape = std::ranges::find(kEscapes, c, &Escape::first);
    if (escape == std::end(kEscapes)) {
      out += c;
    } else {
      out += escape->second;
    }
  }
  return out;
}

std::string bold(std::string_view text) {
  return "\\fB" + escaped(text) + "\\fR";
}

std::string italic(std::string_view text) {
  return "\\fI" + escaped(text) + "\\fR";
}

std::string section(std::string_view title) {
  return fmt::format(".SH {}\n", title);
}

// A term and, indented, its description.
std::string entry(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", term, text);
}

std::string value_of(const OptionShape& option) {
  return italic(option.value_name) + (option.is_repeatable ? " ..." : "");
}

std::string option_text(const OptionShape& option) {
  std::string text = escaped(option.description);
  if (option.is_required) text += " (required)";
  if (option.value_name == "WORD") {
    text += ".\nOne of:";
    for (const std::string& word : option.words)
      text += (&word == option.words.data() ? " " : ", ") + bold(word);
  }
  if (!option.default_value.empty()) text += ".\nDefault: " + escaped(option.default_value);
  return text + ".";
}

std::string options_of(const CommandShape& command) {
  std::string text;
  for (const OptionShape& option : command.options) {
    std::string term;
    for (const std::string& name : option.names) term += (term.empty() ? "" : ", ") + bold(name);
    if (!term.empty() && !option.value_name.empty()) term += " ";
    if (option.names.empty() || !option.value_name.empty()) term += value_of(option);
    text += entry(term, option_text(option));
  }
  return text;
}

std::string synopsis(const CommandShape& command, const std::string& path) {
  std::string text = bold(path) + " [" + italic("options") + "]";
  if (!command.commands.empty()) return text + " " + italic("command") + "\n";
  for (const OptionShape& option : command.options) {
    if (!option.names.empty()) continue;
    text += " " + (option.is_required ? value_of(option) : "[" + value_of(option) + "]");
  }
  return text + "\n";
}

std::string header(const std::string& name, const std::string& description) {
  return fmt::format(
      ".\\\" Written by `cinch man-pages`.\n.TH {0} 1 \"\" \"Cinch {1}\" \"Cinch\"\n"
      ".SH NAME\n{2} \\- {3}\n",
      escaped(name), kVersion, escaped(name), escaped(description));
}

// "cache show", whose options are on the page of "cache".
std::string inner_commands(const CommandShape& command) {
  std::string text = section("COMMANDS");
  for (const CommandShape& inner : command.commands) {
    const std::string path = fmt::format("cinch {} {}", command.name, inner.name);
    text += fmt::format(".SS {}\n{}.PP\n{}.\n", escaped(path), synopsis(inner, path),
                        escaped(inner.description));
    text += options_of(inner);
  }
  return text;
}

ManPage command_page(const CommandShape& command) {
  const std::string path = "cinch " + command.name;
  std::string text = header("cinch-" + command.name, command.description);
  text += section("SYNOPSIS") + synopsis(command, path);
  text += section("OPTIONS") + options_of(command);
  if (!command.commands.empty()) text += inner_commands(command);
  constexpr std::string_view kExample = "Example: ";
  if (command.footer.starts_with(kExample)) {
    text +=
        fmt::format(".SH EXAMPLE\n.nf\n{}\n.fi\n", escaped(command.footer.substr(kExample.size())));
  }
  text += section("SEE ALSO") + ".BR cinch (1)\n";
  return {fmt::format("cinch-{}.1", command.name), text};
}

ManPage root_page(const CommandShape& root) {
  std::string text = header("cinch", "compiler of gradient compressors");
  text += section("SYNOPSIS") + synopsis(root, "cinch");
  text += section("DESCRIPTION") + escaped(root.description) + "\n";
  text += section("OPTIONS") + options_of(root);
  text += section("COMMANDS");
  for (const CommandShape& command : root.commands) {
    text += entry(bold("cinch-" + command.name) + "(1)", escaped(command.description));
  }
  text += section("EXIT STATUS");
  for (const ExitCodeMeaning& meaning : exit_code_meanings()) {
    text += entry(bold(std::to_string(static_cast<int>(meaning.code))), escaped(meaning.text));
  }
  text += section("ENVIRONMENT");
  for (const EnvironmentVariable& variable : environment_variables()) {
    text += entry(bold(variable.name), escaped(variable.meaning));
  }
  return {"cinch.1", text};
}

}  // namespace

void add_man_pages(Registry& registry) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = registry.app.add_subcommand("man-pages", "writes the manual pages");
  command->group("");
  add_value(command, "folder", *folder, "DIR", "the folder for the pages")->required();
  command->callback([root = &registry.app, action = &registry.action, folder] {
    *action = [root, folder] {
      std::error_code error;
      std::filesystem::create_directories(*folder, error);
      if (error) throw CommandError(ExitCode::AtFault, *folder + ": " + error.message());
      const auto write = [&](const ManPage& page) {
        write_file((std::filesystem::path(*folder) / page.file_name).string(), page.text);
      };
      const CommandShape shape = shape_of(*root);
      write(root_page(shape));
      for (const CommandShape& inner : shape.commands) write(command_page(inner));
      return ExitCode::Done;
    };
  });
}

}  // namespace cinch::driver
