#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "compiler/service/library_list.h"
#include "runtime/call/parameters.h"
#include "runtime/core/numbers/parse_number.h"
#include "runtime/payload/payload.h"

namespace cinch::service {
namespace {

using nlohmann::json;

// Payloads are compared for this many elements, a tensor of 4 MiB.
constexpr std::int64_t kElements = 1 << 20;

constexpr std::string_view kHeadings[] = {"Paper:", "Stores:", "Choices:"};

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// Null if there is no payload.
json payload_bits(const rt::ProgramInfo& info) {
  if (info.has_sync) return {};
  const rt::ParameterValues parameters(info);
  HostEnv env;
  env.n = env.rows = kElements;
  if (info.is_matrix) env.rows = env.cols = 1 << 10;
  env.params = parameters.host_values();
  const auto layout = rt::payload_bound_layout(info, env);
  if (!layout) return {};
  return 8.0 * static_cast<double>(layout->size_bytes) / static_cast<double>(kElements);
}

json or_null(const std::string& text) {
  return text.empty() ? json() : json(text);
}

json what_is_known(const StdlibFile& file, const sema::CompressorEntry& entry) {
  return {{"name", entry.name},
          {"family", file.family},
          {"summary", doc_section(entry.doc, "")},
          {"paper", doc_section(entry.doc, "Paper:")},
          {"stores", doc_section(entry.doc, "Stores:")},
          {"choices", doc_section(entry.doc, "Choices:")},
          {"payload_bits_per_element", nullptr},
          {"payload_bound", nullptr},
          {"aggregation", "as the wrapped one"},
          {"matrix", false},
          {"carrier", nullptr},
          {"carries_sums", nullptr},
          {"state", entry.states},
          {"inputs", entry.inputs},
          {"claims", entry.claims},
          {"file", file.path}};
}

void add_program(sema::CheckedProgram& program, json& item) {
  rt::ProgramInfo& info = program.info;
  item["payload_bits_per_element"] = payload_bits(info);
  if (!info.has_sync) item["payload_bound"] = formula_with_sizes(info, payload_bound(info));
  item["aggregation"] = info.has_sync                                 ? "sync"
                        : info.aggregation == rt::Aggregation::Gather ? "gather"
                                                                      : "sum";
  item["carrier"] = carrier_json(info.carrier);
  item["carries_sums"] = carrier_text(info);
  item["matrix"] = info.is_matrix;
  item["state"] = json::array();
  for (const rt::StateInfo& state : info.states) {
    if (!state.is_input) item["state"].push_back(state.name);
  }
  item["inputs"] = json::array();
  for (const rt::ParamInfo& param : info.params) {
    if (param.is_input) item["inputs"].push_back(param.name);
  }
  for (const rt::StateInfo& state : info.states) {
    if (state.is_input) item["inputs"].push_back(state.name);
  }
  item["claims"] = json::array();
  for (const sema::Claim& claim : program.claims) item["claims"].push_back(claim.text);
}

void describe(FrontEnd& front_end, const StdlibFile& file, json& list) {
  const dsl::SourceBuffer& source = front_end.load(file.path);
  const sema::CheckedModule module = sema::check_module(front_end.sources, source.id(), load_import,
                                                        front_end.sink, sema::CheckDepth::Names);
  if (front_end.sink.has_errors()) return;
  for (const sema::CompressorEntry& entry : module.compressors()) {
    json item = what_is_known(file, entry);
    if (!entry.is_wrapper) {
      auto program = sema::elaborate(module, entry.name, {}, front_end.sink);
      if (!program) return;
      add_program(*program, item);
    }
    item["parameters"] = json::array();
    for (const sema::OpenParameter& param :
         sema::open_parameters(module, entry.name, front_end.sink))
      item["parameters"].push_back({{"name", param.name},
                                    {"doc", one_line(param.doc)},
                                    {"type", param.type},
                                    {"default", or_null(param.initial)},
                                    {"range", or_null(param.range)},
                                    {"constant", param.is_const},
                                    {"words", param.words}});
    item["example"] = example_of(item, entry.doc);
    list.push_back(std::move(item));
  }
}

}  // namespace

std::string doc_section(const std::string& doc, std::string_view heading) {
  const std::size_t at = doc.find(heading);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + heading.size();
  std::size_t end = doc.size();
  for (const std::string_view next : kHeadings)
    end = std::min(end, doc.find("\n" + std::string(next), begin));
  return one_line(doc.substr(begin, end - begin));
}

json list_library(FrontEnd& front_end) {
  const std::vector<StdlibFile> files = stdlib_files();
  if (files.empty()) {
    throw ServiceError(Fault::Unavailable,
                       "the standard library was not found; CINCH_STDLIB names its folder");
  }
  json list = json::array();
  for (const StdlibFile& file : files) {
    if (!is_part(file)) describe(front_end, file, list);
  }
  return list;
}

namespace {

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

// Values of the inputs, in the shell's syntax and as what Python's calls take.
struct InputExample {
  std::string shell, of_encode, of_compress;
};

InputExample inputs_of(const json& item) {
  InputExample given;
  std::string values;
  for (const json& input : item["inputs"]) {
    const auto name = input.get<std::string>();
    const bool is_rate = name == "lr";
    given.shell += fmt::format(" {}={}", name, is_rate ? "0.1" : name + ".npy");
    values += fmt::format("{}\"{}\": {}", values.empty() ? "" : ", ", name, is_rate ? "0.1" : name);
    if (is_rate) given.of_compress = ", optimizer=optimizer";
  }
  if (values.empty()) return given;
  given.shell = " --with" + given.shell;
  given.of_encode = ", inputs={" + values + "}";
  return given;
}

}  // namespace

json example_of(const json& item, const std::string& doc) {
  const std::string program = program_of(item, doc);
  const bool is_sync = item["aggregation"] == "sync";
  const Setting set = setting_of(item);
  const std::string word = is_wrapper(item) ? "\"" + program + "\"" : program;
  const std::string flag = set.name.empty() ? "" : fmt::format(" --set {}={}", set.name, set.shell);
  const std::string keyword = set.name.empty() ? "" : fmt::format(", {}={}", set.name, set.python);
  const InputExample given = inputs_of(item);
  const char* const shape = item["matrix"].get<bool>() ? "1024, 1024" : "1 << 20";
  json python = {
      fmt::format("import cinch, numpy; g = numpy.random.randn({}).astype(\"f4\")", shape),
      fmt::format("payload = cinch.compile(\"{}\"{}).session(g).encode(0, g{})", program, keyword,
                  given.of_encode)};
  if (is_sync) {
    python = {"import cinch.torch  # model: a DistributedDataParallel",
              fmt::format("cinch.torch.compress(model, \"{}\"{}{})", program, keyword,
                          given.of_compress)};
  }
  return {{"program", program},
          {"command",
           fmt::format("cinch run {}{}{} {}", word, flag, given.shell,
                       is_sync ? "--ranks --input g0.npy g1.npy" : "--input g.npy --output x.npy")},
          {"python", python}};
}

}  // namespace cinch::service
