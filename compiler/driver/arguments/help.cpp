// The table of environment variables; docs/command_line.md has the same rows.

#include <algorithm>
#include <cctype>
#include <sstream>

#include "compiler/driver/arguments/help.h"
#include "compiler/driver/arguments/shared_options.h"
#include "compiler/driver/command_tree.h"
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
    throw UsageError("'{}' is not a page of help; the pages are `environment` and `exit-codes`",
                     name);
  }
  for (const Topic* page : pages) {
    if (page != pages.front()) print_text("\n");
    page->print();
  }
  return ExitCode::Done;
}

bool is_code(const std::string& word) {
  return word.size() == 4 && std::string_view("LPSlps").find(word[0]) != std::string_view::npos &&
         std::ranges::all_of(word.substr(1), [](char c) { return c >= '0' && c <= '9'; });
}

// Prints the section of docs/diagnostics.md about a diagnostic; programs are indented, not fenced.
ExitCode print_diagnostic(std::string code) {
  code[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(code[0])));
  const std::string_view page = diagnostics_text(), heading = "\n## ";
  const std::size_t at = page.find(fmt::format("{}{} ", heading, code));
  if (at == std::string_view::npos) {
    throw UsageError(
        "there is no diagnostic {}; codes begin with L for text, P for syntax, S for "
        "names, types and sizes",
        code);
  }
  const std::size_t begin = at + heading.size(), end = page.find(heading, begin);
  std::istringstream lines{std::string(page.substr(begin, end - begin))};
  std::string text;
  bool is_program = false;
  for (std::string line; std::getline(lines, line);) {
    // Titles of examples are bold in the page.
    if (line.size() > 4 && line.starts_with("**") && line.ends_with("**"))
      line = line.substr(2, line.size() - 4);
    if (line.starts_with("```")) {
      is_program = !is_program;
    } else if (is_program) {
      text += line.empty() ? "\n" : "    " + line + "\n";
    } else {
      text += (line.starts_with(' ') ? line : wrapped(line, 0, text_width())) + "\n";
    }
  }
  text.erase(text.find_last_not_of('\n') + 1);
  print_text("{}\n", text);
  return ExitCode::Done;
}

ExitCode print_help(const CLI::App& root, const std::vector<std::string>& words) {
  if (!words.empty() && find_topic(words.front()) != nullptr) return print_pages(words);
  if (words.size() == 1 && is_code(words.front())) return print_diagnostic(words.front());
  const CLI::App& command = *find_command(root, words, help_pages());
  if (const std::size_t depth = depth_of(command); depth < words.size()) {
    throw UsageError("`{}` has no command '{}'", path_of(command), words[depth]);
  }
  print_text("{}", command.get_formatter()->make_help(&command, path_of(command),
                                                      CLI::AppFormatMode::Normal));
  return ExitCode::Done;
}

constexpr EnvironmentVariable kVariables[] = {
    // Output.
    {"NO_COLOR", "If set and not empty, no output has colour. --color=always overrides it."},
    {"TERM", "If it is dumb, no output has colour."},
    {"TMPDIR", "The folder for temporary files and for reports of internal errors; else /tmp."},
    // Programs.
    {"CINCH_STDLIB", "The folder of the standard library."},
    {"CINCH_TUNING",
     "A file with tuning numbers of this machine, instead of cinch/tuning.json in the folder of "
     "settings; off uses the built-in numbers alone."},
    // The cache.
    {"CINCH_CACHE", "off or 0: compiled programs are neither kept nor reused."},
    {"CINCH_CACHE_DIR", "The folder of compiled programs, instead of cinch in the cache folder."},
    {"CINCH_CACHE_SHARED",
     "More folders of compiled programs, separated by colons. Cinch reads them and never writes to "
     "them."},
    {"CINCH_CACHE_MAX_BYTES",
     "The most that the cache keeps, such as 256Mi. The programs unused for longest are removed."},
    {"CINCH_BACKGROUND",
     "off or 0: nothing is compiled in the background. Code that sessions of the C API run is "
     "fully optimised at once."},
    {"XDG_CACHE_HOME", "The cache folder; else ~/.cache. A relative path is ignored."},
    {"XDG_CONFIG_HOME", "The folder of settings; else ~/.config. A relative path is ignored."},
    {"HOME", "The folder that ~ stands for in these defaults."},
    // Libraries.
    {"CINCH_LIBRARY", "The file libcinch.so that the Python package opens."},
    {"CINCH_COMPILER", "The file libcinch_compiler.so, for programs that link libcinch.so."},
    {"CINCH_CLANG_LIBRARY", "The file libcinch_clang.so, which compiles for CPUs."},
    {"CINCH_NVRTC", "NVIDIA's NVRTC, which compiles for GPUs: a file, or a folder to search."},
    {"CINCH_NCCL", "The file libnccl.so.2, for transport nccl."},
    {"CINCH_MPI", "The file libcinch_mpi.so, for transport mpi."},
    {"CINCH_MPIRUN", "The mpirun that starts ranks; else the one beside MPI's library or in PATH."},
    {"CINCH_UCX", "The file libcinch_ucx.so, for transport ucx."},
    {"CINCH_UCX_LIBRARY", "The file libucp.so.0 of UCX."},
    {"CINCH_SITE_PACKAGES",
     "Folders of Python packages, separated by colons, in which NVIDIA's libraries are searched."},
    {"VIRTUAL_ENV", "Its Python packages are searched for NVIDIA's libraries."},
    {"CONDA_PREFIX", "Its libraries are searched for NVIDIA's libraries."},
    {"CUDA_PATH", "A CUDA toolkit whose libraries are searched last."},
    {"CUDA_HOME", "A CUDA toolkit whose libraries are searched last."},
    {"PATH", "The folders in which mpirun is searched."},
    // Ranks.
    {"CINCH_SECRET", "The secret by which ranks of transport ucx know each other."},
    {"CINCH_LAUNCHED",
     "Set by the command for the ranks that it starts, so that these start none."},
    {"RANK", "The number of this rank over transport ucx, as torchrun sets it."},
    {"WORLD_SIZE", "The number of ranks over transport ucx, as torchrun sets it."},
    {"OMPI_COMM_WORLD_RANK", "Set by Open MPI's mpirun. Rank 0 reports for all ranks."},
    {"OMPI_COMM_WORLD_SIZE",
     "Set by Open MPI's mpirun. This process is then one of its ranks, and the transport is mpi."},
    {"PMIX_RANK", "Set by launchers such as srun. This process is then a rank of transport mpi."},
    {"PMI_RANK", "Set by MPICH's launcher. This process is then a rank of transport mpi."},
    {"NCCL_MULTI_RANK_GPU_ENABLE", "1: NCCL 2.30 and newer lets ranks share a GPU."},
    {"UCX_*", "Settings of UCX, which come before those that Cinch would choose."},
};

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
  add_value(command, "command", *words, "COMMAND",
            "a command, such as `run` or `cache show`, one of the pages `environment` and "
            "`exit-codes`, or the code of a diagnostic, such as S014; none: all commands");
  command->callback([root = &registry.app, action = &registry.action, words] {
    *action = [root, words] { return print_help(*root, *words); };
  });
  command->footer("Example: cinch help cache warm");
}

std::span<const EnvironmentVariable> environment_variables() {
  return kVariables;
}

std::string path_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

namespace {

[[noreturn]] void refuse(const CLI::App& app, const std::string& message) {
  throw UsageError("{}\nsee: {} --help", message, path_of(app));
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

// May return the word itself, which may be valid in another place.
std::string nearest(const std::string& word, const std::vector<std::string>& names) {
  if (std::ranges::find(names, word) != names.end()) return word;
  return std::string(nearest_name(word, {names.begin(), names.end()}));
}

// What the user may have meant: another option, or a parameter of a program. Empty if unknown.
std::string meant_instead(const CLI::App& command, const std::string& option) {
  const std::string plain = option.substr(option.find_first_not_of('-'));
  // Names without dashes, since dashes would make any two names similar.
  std::vector<std::string> names;
  for (const CLI::Option* known : command.get_options()) {
    names.insert(names.end(), known->get_lnames().begin(), known->get_lnames().end());
  }
  const std::string near = nearest(plain, names);
  if (!near.empty()) return "--" + near;
  if (command.get_option_no_throw("--set") == nullptr) return {};
  const CLI::Option* const program = command.get_option_no_throw("program");
  const bool has_program = program != nullptr && program->count() != 0;
  const std::string parameter =
      nearest(plain, library_parameters(has_program ? program->results().front() : ""));
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

[[noreturn]] void refuse_option(const UnknownWord& unknown) {
  const std::string option = unknown.word.substr(0, unknown.word.find('='));
  // Options of every command are options of none if they are before the command.
  const bool belongs_to_commands = std::ranges::any_of(
      commands_of(*unknown.command),
      [&](const CLI::App* command) { return command->get_option_no_throw(option) != nullptr; });
  if (belongs_to_commands) {
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
