#include "compiler/driver/arguments/help.h"

#include "compiler/driver/arguments/add_commands.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

// CLI11 only indents the lines of a description; this also breaks them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return wrapped(app->get_description(), 0, text_width()) + "\n";
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return right_of(get_column_width(), option->get_description());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    constexpr std::size_t kColumn = 14;  // names are shorter than options
    std::ostringstream text;
    CLI::detail::format_help(text, command->get_name(),
                             right_of(kColumn, command->get_description()), kColumn);
    return text.str();
  }

 private:
  static std::string right_of(std::size_t column, const std::string& text) {
    constexpr std::size_t kNarrowest = 20;
    const std::size_t left = text_width() - std::min(text_width(), column);
    return wrapped(text, 0, std::max(left, kNarrowest));
  }
};

struct Topic {
  std::string_view name;
  void (*print)();
};

void print_entry(std::string_view name, std::size_t indent, std::string_view text) {
  const std::string start = padded(std::string(name), indent - 2) + "  ";
  const bool is_long = num_characters(std::string(name)) + 2 > indent;
  print_text("{}{}{}\n", is_long ? std::string(name) : start,
             is_long ? "\n" + std::string(indent, ' ') : "",
             wrapped(std::string(text), indent, text_width()));
}

void print_environment() {
  constexpr std::size_t kIndent = 24;
  print_text("Environment variables that Cinch reads.\n\n");
  for (const EnvironmentVariable& variable : environment_variables()) {
    print_entry(variable.name, kIndent, variable.meaning);
  }
}

void print_exit_codes() {
  constexpr std::size_t kIndent = 16;
  print_text("How a command ends: its exit status, and the `kind` of the error with --json.\n\n");
  for (const ExitCodeMeaning& meaning : exit_code_meanings()) {
    print_entry(fmt::format("{} {}", static_cast<int>(meaning.code), meaning.kind), kIndent,
                meaning.text);
  }
}

constexpr Topic kTopics[] = {{"environment", print_environment}, {"exit-codes", print_exit_codes}};

std::size_t depth_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? 0 : 1 + depth_of(*app.get_parent());
}

const Topic* find_topic(const std::string& name) {
  const auto* const topic = std::ranges::find(kTopics, name, &Topic::name);
  return topic == std::end(kTopics) ? nullptr : topic;
}

// Prints the pages one after the other.
ExitCode print_pages(const std::vector<std::string>& names) {
  std::vector<const Topic*> pages;
  for (const std::string& name : names) {
    pages.push_back(find_topic(name));
    if (pages.back() != nullptr) continue;
    throw CommandError(ExitCode::Usage, fmt::format("'{}' is not a page of help; the pages are "
                                                    "`environment` and `exit-codes`",
                                                    name));
  }
  for (const Topic* page : pages) {
    if (page != pages.front()) print_text("\n");
    page->print();
  }
  return ExitCode::Done;
}

ExitCode print_help(const CLI::App& root, const std::vector<std::string>& words) {
  if (!words.empty() && find_topic(words.front()) != nullptr) return print_pages(words);
  const CLI::App& command = *find_command(root, words, help_pages());
  if (const std::size_t depth = depth_of(command); depth < words.size()) {
    throw CommandError(ExitCode::Usage,
                       fmt::format("`{}` has no command '{}'", path_of(command), words[depth]));
  }
  print_text("{}", command.get_formatter()->make_help(&command, path_of(command),
                                                      CLI::AppFormatMode::Normal));
  return ExitCode::Done;
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::vector<std::string> help_pages() {
  std::vector<std::string> names;
  for (const Topic& topic : kTopics) names.emplace_back(topic.name);
  return names;
}

void add_help(Registry& registry) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command = registry.app.add_subcommand("help", "shows the options of a command");
  command
      ->add_option(
          "command", *words,
          "a command, such as `run` or `cache show`, or one of the pages `environment` and "
          "`exit-codes`; none: all commands")
      ->type_name("COMMAND");
  command->callback([root = &registry.app, action = &registry.action, words] {
    *action = [root, words] { return print_help(*root, *words); };
  });
  command->footer("Example: cinch help cache warm");
}

}  // namespace cinch::driver
