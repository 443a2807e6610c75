#include "compiler/driver/process/json_output.h"

#include <fmt/format.h>

#include <string_view>

#include "compiler/driver/process/terminal.h"

namespace cinch::driver {

namespace {

using nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

struct Printed {
  bool has_result = false;
  std::string message;
  OrderedJson diagnostics = OrderedJson::array();
};

Printed& printed() {
  static Printed state;
  return state;
}

template <typename Json>
void print_line(const Json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// "topk.cinch:3:7: unknown name `x`".
std::string first_error(const OrderedJson& diagnostics) {
  for (const OrderedJson& found : diagnostics) {
    if (found["severity"] != "error") continue;
    auto message = found["message"].get<std::string>();
    if (!found.contains("file")) return message;
    return fmt::format("{}:{}:{}: {}", found["file"].get<std::string>(), found["line"].get<int>(),
                       found["column"].get<int>(), message);
  }
  return {};
}

}  // namespace

bool asks_for_json(const std::vector<std::string>& words) {
  std::string_view before;
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--json" || word == "--diagnostics=json") return true;
    if (word == "json" && before == "--diagnostics") return true;
    before = word;
  }
  return false;
}

void print_result(const json& result) {
  note_printed_result();
  print_line(result);
}

void note_printed_result() {
  printed().has_result = true;
}

void keep_diagnostics(const std::string& rendered) {
  printed().diagnostics = OrderedJson::parse(rendered)["diagnostics"];
}

void keep_failure_message(const std::string& message) {
  printed().message = message;
}

void print_failure(ExitCode code, const std::string& message) {
  const OutputSettings& settings = output_settings();
  if (!settings.is_json || !settings.prints_json_errors || printed().has_result) return;
  const OrderedJson& diagnostics = printed().diagnostics;
  std::string text = message.empty() ? first_error(diagnostics) : message;
  if (text.empty()) text = printed().message;
  if (text.empty()) text = meaning_of(code).text;
  const OrderedJson error = {{"kind", meaning_of(code).kind},
                             {"exit_code", static_cast<int>(code)},
                             {"message", text},
                             {"diagnostics", diagnostics}};
  print_line(OrderedJson{{"error", error}});
}

}  // namespace cinch::driver
