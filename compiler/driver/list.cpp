// cinch list: the standard library.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/driver/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/terminal.h"
#include "runtime/call/parameters.h"
#include "runtime/payload/payload.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

// Payloads are compared at this many elements, a tensor of 4 MiB.
constexpr std::int64_t kElements = 1 << 20;

// What follows "Paper:" in a program's documentation, up to the next such heading.
std::string paper_of(const std::string& doc) {
  constexpr std::string_view kHeading = "Paper:";
  const std::size_t begin = doc.find(kHeading);
  if (begin == std::string::npos) return "";
  const std::size_t end = std::min(doc.find("\nStores:", begin), doc.size());
  std::string paper = doc.substr(begin + kHeading.size(), end - begin - kHeading.size());
  std::replace(paper.begin(), paper.end(), '\n', ' ');
  return paper.substr(std::min(paper.find_first_not_of(' '), paper.size()));
}

// Null where there is no payload.
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

std::string aggregation_of(const rt::ProgramInfo& info) {
  if (info.has_sync) return "sync";
  return info.aggregation == rt::Aggregation::Gather ? "gather" : "sum";
}

void describe(FrontEnd& front_end, const StdlibFile& file, json& list) {
  const dsl::SourceBuffer& source = front_end.load(file.path);
  const sema::CheckedModule module = sema::check_module(front_end.sources, source.id(), load_import,
                                                        front_end.sink, sema::CheckDepth::Names);
  if (front_end.sink.has_errors()) return;
  for (const sema::CompressorEntry& entry : module.compressors()) {
    json item = {{"name", entry.name},
                 {"family", file.family},
                 {"payload_bits_per_element", nullptr},
                 {"aggregation", "as the wrapped one"},
                 {"state", entry.states},
                 {"paper", paper_of(entry.doc)},
                 {"file", file.path}};
    if (!entry.is_wrapper) {
      const auto program = sema::elaborate(module, entry.name, {}, front_end.sink);
      if (!program) return;
      item["payload_bits_per_element"] = payload_bits(program->info);
      item["aggregation"] = aggregation_of(program->info);
      item["state"] = json::array();
      for (const rt::StateInfo& state : program->info.states) item["state"].push_back(state.name);
    }
    list.push_back(std::move(item));
  }
}

void print_row(const std::string& name, const std::string& family, const std::string& bits,
               const std::string& aggregation, const std::string& paper) {
  const std::string row =
      fmt::format("{:<16} {:<10} {:>12}  {:<20} {}", name, family, bits, aggregation, paper);
  fmt::print("{}\n", fit_to_width(row, output_width()));
}

void print_list(const json& list) {
  print_row("name", "family", "bits/element", "adds up", "paper");
  for (const json& item : list) {
    const json& bits = item["payload_bits_per_element"];
    print_row(item["name"], item["family"],
              bits.is_null() ? "-" : fmt::format("{:.3f}", bits.get<double>()), item["aggregation"],
              item["paper"]);
  }
}

}  // namespace

ExitCode run_list(const ListOptions& options) {
  if (stdlib_files().empty()) {
    throw CommandError(ExitCode::Unavailable,
                       "the standard library was not found; CINCH_STDLIB names its folder");
  }
  FrontEnd front_end;
  json list = json::array();
  for (const StdlibFile& file : stdlib_files()) describe(front_end, file, list);
  front_end.end_if_errors();
  if (options.json) {
    fmt::print("{}\n", list.dump());
  } else {
    print_list(list);
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
