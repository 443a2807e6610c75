// Options that several sub-commands have.
#include "compiler/driver/arguments/shared_options.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "runtime/core/numbers/parse_number.h"
#include "runtime/exec/task_runner.h"

namespace cinch::driver {
namespace {

// Replaces `text` by plain digits. Returns the error; empty if there is none.
std::string read_count(std::string& text, std::int64_t least, std::uint64_t most,
                       std::string_view unit) {
  const ParsedCount count = parse_count(text, unit);
  if (count.state == ParsedCount::State::NoNumber) {
    return fmt::format(
        "'{}' is not a whole number; 4096, 1e6, 64k (thousands) and 64Ki (1024 each) are", text);
  }
  if (count.state == ParsedCount::State::Fraction) {
    return fmt::format("{} is not a whole number", text);
  }
  const bool is_too_large = count.state == ParsedCount::State::TooLarge;
  const bool is_below =
      count.is_negative
          ? is_too_large || least >= 0 || count.magnitude > 0 - static_cast<std::uint64_t>(least)
          : !is_too_large && least > 0 && count.magnitude < static_cast<std::uint64_t>(least);
  if (is_below) return fmt::format("at least {}, found {}", least, text);
  if (!count.is_negative && (is_too_large || count.magnitude > most)) {
    return fmt::format("at most {}, found {}", most, text);
  }
  text = fmt::format("{}{}", count.is_negative ? "-" : "", count.magnitude);
  return {};
}

}  // namespace

CLI::Validator count_between(std::int64_t least, std::uint64_t most, std::string_view unit) {
  return {[least, most, unit](std::string& text) { return read_count(text, least, most, unit); },
          ""};
}

CLI::Validator between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        const double value = std::strtod(text.c_str(), nullptr);
        const bool is_fine = value >= least && value <= most;
        return is_fine ? std::string() : fmt::format("from {} to {}, found {}", least, most, text);
      },
      "");
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    std::string_view near = nearest_name(text, {words.begin(), words.end()});
    // Another letter makes another short word: `gpu` does not mean `cpu`.
    constexpr std::size_t kShort = 3;
    if (text.size() <= kShort && near.size() == text.size()) near = "";
    return fmt::format("'{}' is not one of {}{}", text, fmt::join(words, ", "), did_you_mean(near));
  };
  return {check, fmt::format("{{{}}}", fmt::join(words, ","))};
}

CLI::Validator seconds() {
  static constexpr double kMost = 1e6;
  return CLI::Validator(
      [](const std::string& text) {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool is_whole = !text.empty() && *end == '\0';
        if (is_whole && value >= 0 && value <= kMost) return std::string();
        return fmt::format("a number of seconds from 0 to {}, found '{}'", kMost, text);
      },
      "");
}

CLI::Option* add_word(CLI::App* command, const std::string& names, std::string& value,
                      const std::vector<std::string>& words, const std::string& description) {
  return command->add_option(names, value, description)
      ->check(one_of(words))
      ->capture_default_str();
}

CLI::Option* add_seconds(CLI::App* command, const std::string& names, double& value,
                         const std::string& description) {
  return add_value(command, names, value, "SECONDS", description)
      ->check(seconds())
      ->capture_default_str();
}

void add_states(CLI::App* command, codegen::StateUpdate& states) {
  const std::map<std::string, codegen::StateUpdate> names{
      {"second-buffer", codegen::StateUpdate::SecondBuffer},
      {"in-place", codegen::StateUpdate::InPlace}};
  command
      ->add_option_function<std::string>(
          "--states", [&states, names](const std::string& name) { states = names.at(name); },
          "where a step writes new states: to a second buffer, or over the old states where that "
          "is safe")
      ->check(one_of({"second-buffer", "in-place"}))
      ->default_str("second-buffer");
}

void add_headers(CLI::App* command, rt::HeaderSearch& headers) {
  add_value(command, "-I,--include", headers.include_folders, "DIR",
            "a folder with C++ headers of `extern fn`; -I again for more; the program's own "
            "folder comes first")
      ->allow_extra_args(false);
  add_value(command, "--compile-commands", headers.compile_commands, "FILE",
            "a compile_commands.json; these headers are read with its include paths and macros");
  add_value(command, "--confine", headers.confine, "DIR",
            "a folder, for the text of a stranger: imports lie below it, and headers of "
            "`extern fn` there, in folders of -I, or among the system's")
      ->check(CLI::ExistingDirectory);
}

void add_bindings(CLI::App* command, std::vector<std::string>& bindings) {
  add_value(command, "--set", bindings, "NAME=VALUE",
            "sets a parameter of the program, such as ratio=0.01; each NAME=VALUE that "
            "follows sets another (a file of such a name is ./NAME=VALUE)")
      ->allow_extra_args(false);
}

void add_program(CLI::App* command, ProgramOptions& options) {
  add_value(command, "program", options.program, "PROGRAM",
            "a file, file:name where a file has several compressors, or a name of the "
            "standard library")
      ->required();
  add_bindings(command, options.bindings);
  add_states(command, options.states);
  add_headers(command, options.headers);
  add_count(command, "--pass-limit", options.pass_limit,
            "compiles with only this many rewrites and fusion steps, to find the one that changes "
            "a result");
}

void add_execution(CLI::App* command, ExecutionOptions& options) {
  add_word(command, "--device", options.device, {"cpu", "cuda", "emulated"},
           "where the program runs; emulated: a GPU that is emulated on the CPU");
  add_word(command, "--cpu", options.cpu, known_cpus(),
           "the processor to compile for: this machine's (native), x86-64 with AVX2 (v3) "
           "or AVX-512 (v4); aarch64 can be built, not run");
  add_count(
      command, "--seed-schedule", options.schedule_seed,
      "seed of the order in which an emulated GPU runs blocks and warps; it never changes a result")
      ->capture_default_str();
  add_count(command, "--threads", options.threads,
            "number of threads; 0: as many as the machine has", 0, rt::kMaxThreads)
      ->capture_default_str();
}

void add_columns(CLI::App* command, std::optional<std::int64_t>& columns) {
  add_count(command, "--columns", columns,
            "columns of a matrix gradient; without it, the divisor of --elements that is nearest "
            "to its square root",
            1);
}

void add_json(CLI::App* command, bool& json) {
  command->add_flag("--json", json, "prints one JSON object on standard output");
}

void add_output_options(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    add_output_options(*command);
    if (!command->get_subcommands([](const CLI::App*) { return true; }).empty()) continue;
    command
        ->add_flag("-q,--quiet", output_settings().is_quiet,
                   "standard error shows errors alone: no progress, warnings or notes")
        ->group("Output");
    const std::map<std::string, Colour> names{
        {"auto", Colour::Auto}, {"always", Colour::Always}, {"never", Colour::Never}};
    command
        ->add_option_function<std::string>(
            "--color",
            [names](const std::string& name) { output_settings().colour = names.at(name); },
            "colours; auto: on a terminal, unless NO_COLOR is set")
        ->check(one_of({"auto", "always", "never"}))
        ->default_str("auto")
        ->group("Output");
  }
}

}  // namespace cinch::driver
