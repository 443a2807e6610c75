#include "compiler/service/library_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/numbers/parse_number.h"

namespace cinch::service {
namespace {

using nlohmann::json;

bool is_wrapper(const json& item) {
  return std::ranges::any_of(item["parameters"],
                             [](const json& param) { return param["type"] == "compressor"; });
}

// "error_feedback(topk)": wraps the inner program of the documentation if that is a plain name.
std::string program_of(const json& item, const std::string& doc) {
  auto name = item["name"].get<std::string>();
  if (!is_wrapper(item)) return name;
  const std::string call = "`" + name + "(";
  for (std::size_t at = 0; (at = doc.find(call, at)) != std::string::npos; at += call.size()) {
    const std::size_t begin = at + call.size();
    const std::size_t end = doc.find_first_of("()`:, ", begin);
    if (doc.compare(end, 2, ")`") == 0) return doc.substr(at + 1, end - at);
  }
  return name + "(topk)";
}

// A parameter and its default, in the shell's or Python's syntax; empty if the default is not a
// value.
struct Setting {
  std::string name, shell, python;
};

Setting setting_of(const json& item) {
  for (const json& param : item["parameters"]) {
    if (!param["default"].is_string()) continue;
    const auto name = param["name"].get<std::string>(), value = param["default"].get<std::string>();
    const auto words = param["words"].get<std::vector<std::string>>();
    if (std::ranges::find(words, value) != words.end()) return {name, value, "\"" + value + "\""};
    if (value == "true" || value == "false")
      return {name, value, value == "true" ? "True" : "False"};
    if (parse_number(value)) return {name, value, value};
  }
  return {};
}

}  // namespace

json example_of(const json& item, const std::string& doc) {
  const std::string program = program_of(item, doc);
  const bool is_sync = item["aggregation"] == "sync";
  const Setting set = setting_of(item);
  const std::string word = is_wrapper(item) ? "\"" + program + "\"" : program;
  const std::string flag = set.name.empty() ? "" : fmt::format(" --set {}={}", set.name, set.shell);
  const std::string keyword = set.name.empty() ? "" : fmt::format(", {}={}", set.name, set.python);
  const char* const shape = item["matrix"].get<bool>() ? "1024, 1024" : "1 << 20";
  json python = {
      fmt::format("import cinch, numpy; g = numpy.random.randn({}).astype(\"f4\")", shape),
      fmt::format("payload = cinch.compile(\"{}\"{}).session(g).encode(0, g)", program, keyword)};
  if (is_sync) {
    python = {"import cinch.torch  # model: a DistributedDataParallel",
              fmt::format("cinch.torch.compress(model, \"{}\"{})", program, keyword)};
  }
  return {{"program", program},
          {"command",
           fmt::format("cinch run {}{} {}", word, flag,
                       is_sync ? "--ranks --input g0.npy g1.npy" : "--input g.npy --output x.npy")},
          {"python", python}};
}

}  // namespace cinch::service
