// cinch list: the standard library.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/driver/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/terminal.h"
#include "compiler/service/library_list.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

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
  FrontEnd front_end;
  const json list = service::list_library(front_end);
  front_end.end_if_errors();
  if (options.json) {
    fmt::print("{}\n", list.dump());
  } else {
    print_list(list);
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
