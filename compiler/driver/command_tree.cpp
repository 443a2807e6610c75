// The parser's tree as data; see command_tree.h. The values of an option come from its text in
// --help: `{a,b}` of a check, or the name of the value.
#include "compiler/driver/command_tree.h"

#include <CLI/CLI.hpp>
#include <set>
#include <sstream>

#include "compiler/driver/arguments/help.h"
#include "compiler/driver/target.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/service/library_list.h"
#include "runtime/planner/planner.h"

namespace cinch::driver {

namespace {

// Compressors of the standard library, wrappers too, as `cinch list` shows them; none if the
// library is not found.
nlohmann::json library_items() {
  if (stdlib_files().empty()) return nlohmann::json::array();
  FrontEnd front_end;
  nlohmann::json items = service::list_library(front_end);
  front_end.end_if_errors();
  return items;
}

// "ratio=" for a number, "fit=gamma" for each word, of all parameters in the library.
std::vector<std::string> library_settings() {
  std::set<std::string> settings;
  for (const nlohmann::json& item : library_items()) {
    for (const nlohmann::json& param : item["parameters"]) {
      if (param["type"] == "compressor") continue;
      const std::string name = param["name"].get<std::string>() + "=";
      auto words = param["words"].get<std::vector<std::string>>();
      if (param["type"] == "bool") words = {"false", "true"};
      for (const std::string& word : words) settings.insert(name + word);
      if (words.empty()) settings.insert(name);
    }
  }
  return {settings.begin(), settings.end()};
}

std::vector<std::string> known_words(const std::string& value_name) {
  std::vector<std::string> words;
  if (value_name == "PROGRAM") {
    for (const LibraryProgram& program : library_programs()) words.push_back(program.name);
  } else if (value_name == "COMPRESSOR") {
    for (const nlohmann::json& item : library_items()) words.push_back(item["name"]);
  } else if (value_name == "NAME=VALUE") {
    words = library_settings();
  } else if (value_name == "TARGET") {
    words = known_targets();
  } else if (value_name == "PLAN") {
    words = {"auto"};
    for (const std::string_view plan : rt::plan_names()) words.emplace_back(plan);
  } else if (value_name == "PASS") {
    for (const pipeline::Pass& pass : pipeline::all_passes()) words.emplace_back(pass.name);
  } else {
    const std::size_t begin = value_name.find('{'), end = value_name.find('}');
    if (begin == std::string::npos || end == std::string::npos) return words;
    std::istringstream list(value_name.substr(begin + 1, end - begin - 1));
    for (std::string word; std::getline(list, word, ',');) words.push_back(word);
  }
  return words;
}

OptionShape shape_of(const CLI::Option& option) {
  OptionShape shape;
  shape.description = option.get_description();
  for (const std::string& name : option.get_snames()) shape.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) shape.names.push_back("--" + name);
  if (option.get_items_expected_max() == 0) return shape;
  const std::string type = option.get_type_name();
  shape.words = known_words(type);
  shape.default_value = option.get_default_str();
  shape.is_required = option.get_required();
  shape.value_name = shape.words.empty() || type.find('{') == std::string::npos ? type : "WORD";
  shape.takes_files =
      type == "FILE" || type == "DIR" || type == "PROGRAM" || type.ends_with(".npy");
  shape.is_repeatable = option.get_items_expected_max() > 1;
  shape.takes_several = shape.is_repeatable && option.get_allow_extra_args();
  return shape;
}

// The words for `cinch help`: the other commands, and its pages.
std::vector<std::string> words_for_help(const CLI::App& help) {
  std::vector<std::string> words;
  for (const CLI::App* command :
       help.get_parent()->get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) words.push_back(command->get_name());
  }
  for (const std::string& page : help_pages()) words.push_back(page);
  return words;
}

}  // namespace

std::vector<std::string> library_parameters(const std::string& compressor) {
  std::set<std::string> all, own;
  try {
    for (const nlohmann::json& item : library_items()) {
      for (const nlohmann::json& param : item["parameters"]) {
        all.insert(param["name"]);
        if (item["name"] == compressor) own.insert(param["name"]);
      }
    }
  } catch (const service::ServiceError&) {
    return {};  // completion must not report errors
  }
  const std::set<std::string>& names = own.empty() ? all : own;
  return {names.begin(), names.end()};
}

CommandShape shape_of(const CLI::App& app) {
  CommandShape shape{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    shape.options.push_back(shape_of(*option));
    if (option->get_type_name() == "COMMAND") shape.options.back().words = words_for_help(app);
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) shape.commands.push_back(shape_of(*command));
  }
  return shape;
}

}  // namespace cinch::driver
