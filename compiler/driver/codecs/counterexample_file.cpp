#include "compiler/driver/codecs/verify_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "compiler/driver/codecs/gradient_file.h"
#include "compiler/driver/process/files.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

std::string stem_of(const std::string& path) {
  return path.ends_with(".npy") ? path.substr(0, path.size() - 4) : path;
}

// Quotes a word for the shell.
std::string quoted(const std::string& word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:=+,@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_plain) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> write_inputs(const std::string& path,
                                      const std::vector<verify::Input>& inputs) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const verify::Shape& shape = inputs[i].shape;
    paths.push_back(i == 0 ? path : fmt::format("{}.{}.npy", stem_of(path), i));
    std::vector<std::int64_t> dims = {shape.rows};
    if (shape.cols != 1) dims.push_back(shape.cols);
    write_gradient(paths.back(), inputs[i].values, dims);
  }
  return paths;
}

std::vector<std::string> commands_of(const std::string& path, const VerifyOptions& options,
                                     const verify::Counterexample& counterexample,
                                     const std::vector<std::string>& inputs) {
  const std::string& plan = counterexample.plan;
  std::string start =
      (plan.empty() ? "cinch run " : "cinch sync ") + quoted(options.program.program);
  for (const std::string& binding : options.program.bindings) {
    start += " --set " + quoted(binding);
  }
  if (options.program.states == codegen::StateUpdate::InPlace) start += " --states in-place";
  if (!plan.empty()) start += " --plan " + plan;
  if (counterexample.are_ranks && plan.empty()) start += " --ranks";
  start += " --input";
  if (counterexample.order.empty()) {
    for (const std::string& input : inputs) start += " " + quoted(input);
  } else {
    for (std::size_t i : counterexample.order) start += " " + quoted(inputs[i]);
  }
  start += fmt::format(" --seed {} --step {}", counterexample.seed, counterexample.step);
  std::vector<std::string> commands;
  const std::vector<std::string>& runs = counterexample.arguments;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::string command = start;
    if (!runs[i].empty()) command += " " + runs[i];
    if (runs.size() > 1) {
      command +=
          fmt::format(" --payload {0}.{1}.bin --output {0}.{1}.out.npy", quoted(stem_of(path)), i);
    } else {
      if (options.execution.device != "cpu") command += " --device " + options.execution.device;
      command += fmt::format(" --output {}.out.npy", quoted(stem_of(path)));
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace

CounterexampleFiles write_counterexample(const std::string& path, const VerifyOptions& options,
                                         const rt::ProgramInfo& info,
                                         const verify::Finding& finding,
                                         const verify::Counterexample& counterexample) {
  CounterexampleFiles files;
  files.inputs = write_inputs(path, counterexample.inputs);
  files.commands = commands_of(path, options, counterexample, files.inputs);
  files.description = stem_of(path) + ".json";
  json parameters = json::object();
  for (const rt::ConstantInfo& constant : info.constants) {
    parameters[constant.name] = constant.value;
  }
  for (const rt::ParamInfo& param : info.params) parameters[param.name] = param.default_value;
  const json description = {{"program", options.program.program},
                            {"law", finding.law},
                            {"figure", finding.figure},
                            {"bound", finding.bound},
                            {"detail", finding.detail},
                            {"seed", counterexample.seed},
                            {"step", counterexample.step},
                            {"parameters", parameters},
                            {"inputs", files.inputs},
                            {"shows", counterexample.shows},
                            {"commands", files.commands}};
  write_file(files.description, description.dump(2) + "\n");
  return files;
}

}  // namespace cinch::driver
