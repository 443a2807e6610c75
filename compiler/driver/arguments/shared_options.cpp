// Options that several sub-commands have; see shared_options.h.
#include "compiler/driver/arguments/shared_options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/target.h"
#include "runtime/core/parse_count.h"
#include "runtime/exec/task_runner.h"

namespace cinch::driver {

namespace {

// Replaces `text` by plain digits. What is wrong with it; empty where nothing is.
std::string read_count(std::string& text, std::int64_t least, std::uint64_t most,
                       std::string_view unit) {
  const ParsedCount count = parse_count(text, unit);
  if (count.state == ParsedCount::State::NoNumber) {
    return fmt::format(
        "'{}' is no whole number; 4096, 1e6, 64k (thousands) and 64Ki (1024 each) are", text);
  }
  if (count.state == ParsedCount::State::Fraction) {
    return fmt::format("{} is no whole number", text);
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

void add_states(CLI::App* command, codegen::StateUpdate& states) {
  const std::map<std::string, codegen::StateUpdate> names{
      {"second-buffer", codegen::StateUpdate::SecondBuffer},
      {"in-place", codegen::StateUpdate::InPlace}};
  command
      ->add_option_function<std::string>(
          "--states", [&states, names](const std::string& name) { states = names.at(name); },
          "where new states are written: beside the present ones, or over them where that is safe")
      ->check(CLI::IsMember({"second-buffer", "in-place"}))
      ->default_str("second-buffer");
}

void add_headers(CLI::App* command, rt::HeaderSearch& headers) {
  command
      ->add_option("-I,--include", headers.include_folders,
                   "where headers of `extern fn` are looked for, behind the program's own folder")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command
      ->add_option("--compile-commands", headers.compile_commands,
                   "a compile_commands.json, for their include paths and macros")
      ->type_name("FILE");
}

void add_bindings(CLI::App* command, std::vector<std::string>& bindings) {
  command
      ->add_option("--set", bindings,
                   "binds a parameter; a constant one is fixed for the compilation")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void add_program(CLI::App* command, ProgramOptions& options) {
  command
      ->add_option("program", options.program,
                   "a path, path:name, or a name of the standard library")
      ->required()
      ->type_name("PROGRAM");
  add_bindings(command, options.bindings);
  add_states(command, options.states);
  add_headers(command, options.headers);
  add_count(command, "--pass-limit", options.pass_limit,
            "stops after that many rewrites and fusion steps, for bisection");
}

void add_execution(CLI::App* command, ExecutionOptions& options) {
  command->add_option("--device", options.device, "cpu, cuda or emulated")
      ->check(CLI::IsMember({"cpu", "cuda", "emulated"}))
      ->capture_default_str();
  command
      ->add_option("--cpu", options.cpu,
                   "native, x86-64, x86-64-v3 (AVX2), x86-64-v4 (AVX-512), x86-64-v2 and aarch64 "
                   "(build only)")
      ->check(CLI::IsMember(known_cpus()))
      ->capture_default_str();
  add_count(command, "--seed-schedule", options.schedule_seed,
            "the order in which an emulated GPU's blocks and warps run; never changes a result")
      ->capture_default_str();
  add_count(command, "--threads", options.threads, "threads; 0 takes all of the machine", 0,
            rt::kMaxThreads)
      ->capture_default_str();
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
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->default_str("auto")
        ->group("Output");
  }
}

}  // namespace cinch::driver
