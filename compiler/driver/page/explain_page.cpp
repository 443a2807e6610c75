#include "compiler/driver/page/pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/report/explain.h"
#include "compiler/driver/report/text.h"
#include "compiler/service/library_list.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

constexpr const char* kHeaderClass = "plain";

std::string bytes_text(const json& number) {
  return grouped(number.get<std::int64_t>());
}

std::string html_list(const std::vector<std::string>& items) {
  std::string text = "<ul>\n";
  for (const std::string& item : items) text += "<li>" + escaped(item) + "</li>\n";
  return text + "</ul>\n";
}

class ExplainPage {
 public:
  explicit ExplainPage(const json& report)
      : report_(report), elements_(report["elements"].get<std::int64_t>()) {}

  std::string whole() {
    add_head();
    if (report_.contains("collectives")) {
      add_collectives();
    } else {
      add_payload();
    }
    for (const char* name : {"encode", "decode", "decode_add", "finish", "sync"}) {
      if (report_.contains(name)) add_entry(name, report_[name]);
    }
    add_numbers();
    add_memory();
    body_ += html_paragraph("Carries sums by " + report_["carries_sums"].get<std::string>() + ".");
    add_safety();
    return html_page(name() + " – cinch explain", body_);
  }

 private:
  std::string name() const { return report_["compressor"].get<std::string>(); }

  void add_head() {
    body_ += html_heading(1, name());
    body_ += html_paragraph(report_["summary"].get<std::string>(), "lead");
    std::string shape = counted(elements_, "element");
    if (report_.contains("columns")) {
      const auto columns = report_["columns"].get<std::int64_t>();
      shape += fmt::format(", a matrix of {} x {}", elements_ / columns, columns);
    }
    body_ += html_paragraph(fmt::format("All numbers are for a gradient of {}: {} bytes.", shape,
                                        grouped(4 * elements_)),
                            "soft");
    add_figures();
    const auto claims = report_["claims"].get<std::vector<std::string>>();
    if (claims.empty()) return;
    body_ += html_heading(3, "Claims, which cinch verify tests");
    body_ += html_list(claims);
  }

  void add_figures() {
    std::vector<Figure> shown;
    if (report_.contains("payload")) {
      const json& payload = report_["payload"];
      shown.push_back({bytes_text(payload["bound_bytes"]), "bytes of payload at most"});
      if (!payload["ratio"].is_null())
        shown.push_back({three_digits(payload["ratio"].get<double>()), "times smaller, at least"});
    }
    for (const char* call : {"encode", "decode", "sync"}) {
      if (!report_.contains(call)) continue;
      const json& entry = report_[call];
      std::string sweeps = entry["sweeps_least"].dump();
      if (entry["sweeps_least"] != entry["sweeps_most"])
        sweeps += " to " + entry["sweeps_most"].dump();
      shown.push_back({sweeps, std::string("sweeps over memory to ") +
                                   (std::string_view(call) == "sync" ? "synchronise" : call)});
    }
    body_ += html_figures(shown);
  }

  // The parts of the longest payload; gaps between fields are alignment.
  std::vector<StripPart> payload_parts() const {
    const json& payload = report_["payload"];
    const auto header = payload["header_bytes"].get<std::int64_t>();
    std::vector<StripPart> parts = {{"header", kHeaderClass, header}};
    std::int64_t at = header;
    const auto counts = static_cast<std::int64_t>(4 * payload["counts"].size());
    if (counts > 0 && elements_ > 0) {
      parts.push_back({"counts", kHeaderClass, counts});
      at += counts;
    }
    std::size_t number = 0;
    for (const json& field : payload["fields"]) {
      const auto offset = field["offset"].get<std::int64_t>();
      if (offset > at) parts.push_back({"alignment", kHeaderClass, offset - at});
      const auto bytes = field["bytes"].get<std::int64_t>();
      parts.push_back({field["name"].get<std::string>(), colour_class(number++), bytes});
      at = std::max(at, offset) + bytes;
    }
    return parts;
  }

  void add_payload() {
    const json& payload = report_["payload"];
    body_ += html_heading(2, "Payload");
    body_ += byte_strip(payload_parts(), "the payload's fields to scale");
    std::vector<std::vector<std::string>> rows = {
        {"header", bytes_text(payload["header_bytes"]), "0", "what it is, for whom, and how long"}};
    std::vector<std::string> swatches = {kHeaderClass};
    for (const json& field : payload["fields"]) {
      swatches.push_back(colour_class(rows.size() - 1));
      rows.push_back({field["name"].get<std::string>(), bytes_text(field["bytes"]),
                      bytes_text(field["offset"]), field_in_words(field)});
    }
    body_ += html_table({"field", "bytes#", "from byte#", "type"}, rows, swatches);
    add_cases();
  }

  void add_cases() {
    const json& payload = report_["payload"];
    const auto bar = [&](const char* name, std::int64_t bytes, const char* css_class) {
      const std::string text = grouped(bytes) + " bytes";
      return Bar{name, {{static_cast<double>(bytes), css_class, text}}, text};
    };
    const auto most = payload["bound_bytes"].get<std::int64_t>();
    const auto least = payload["least_bytes"].get<std::int64_t>();
    std::vector<Bar> bars = {bar("gradient", 4 * elements_, "plain")};
    if (least == most) {
      bars.push_back(bar("every payload", most, "c0"));
    } else {
      bars.push_back(bar("worst case", most, "c0"));
      bars.push_back(bar("best case", least, "c3"));
    }
    body_ += html_heading(
        3, least == most ? "Beside the gradient" : "Worst and best case, beside the gradient");
    body_ += bar_chart(bars, "bytes of the payload beside those of the gradient");
    std::vector<std::string> counts;
    for (const json& count : payload["counts"]) {
      counts.push_back(
          fmt::format("{} ≤ {}", count["name"].get<std::string>(), bytes_text(count["most"])));
    }
    if (!counts.empty())
      body_ +=
          html_paragraph(fmt::format("Counts that the data decides: {}.", fmt::join(counts, ", ")));
    auto bound = payload["bound"].get<std::string>();
    for (const json& size : report_["sizes"])
      service::name_size(bound, size["formula"].get<std::string>(),
                         size["name"].get<std::string>());
    body_ += html_paragraph("Bound: " + bound, "soft");
  }

  void add_collectives() {
    body_ += html_heading(2, "What ranks exchange");
    std::vector<std::vector<std::string>> rows;
    for (const json& each : report_["collectives"]) {
      std::string bytes;
      if (each.contains("packed")) {
        for (const json& world : each["packed"]) {
          bytes += fmt::format("{}{} for {} ranks", bytes.empty() ? "" : ", ",
                               bytes_text(world["bytes"]), world["ranks"].get<int>());
        }
      } else {
        bytes = (each.contains("is_most") ? "at most " : "") + bytes_text(each["bytes"]);
      }
      rows.push_back({each["name"].get<std::string>(), each["type"].get<std::string>(), bytes});
    }
    body_ += html_table({"collective", "of", "bytes of a rank#"}, rows);
  }

  static Bar traffic_bar(const json& entry, const char* name, const char* sweeps,
                         const std::string& read_key, const std::string& written_key) {
    const double read = entry[read_key].get<double>(), written = entry[written_key].get<double>();
    return {name,
            {{read, "c0", fmt::format("{:.3f} B read", read)},
             {written, "c1", fmt::format("{:.3f} B written", written)}},
            fmt::format("{} B read, {} B written, {}", three_digits(read), three_digits(written),
                        counted(entry[sweeps].get<std::int64_t>(), "sweep"))};
  }

  void add_traffic(const std::string& call, const json& entry) {
    std::vector<Bar> bars = {traffic_bar(entry, "the floor", "floor_sweeps",
                                         "floor_read_per_element", "floor_written_per_element")};
    const bool is_one = entry["bytes_read"] == entry["bytes_read_least"] &&
                        entry["bytes_written"] == entry["bytes_written_least"] &&
                        entry["sweeps_least"] == entry["sweeps_most"];
    if (!is_one) {
      bars.push_back(traffic_bar(entry, "moves at best", "sweeps_least", "read_per_element_least",
                                 "written_per_element_least"));
    }
    bars.push_back(traffic_bar(entry, is_one ? "moves" : "moves at worst", "sweeps_most",
                               "read_per_element", "written_per_element"));
    body_ += bar_chart(bars, "bytes per element of the floor, beside those that move");
    if (const std::string why = why_floor_is_above(call, entry); !why.empty())
      body_ += html_paragraph("The floor is above what moves, because " + why + ".", "soft");
  }

  void add_entry(const std::string& call, const json& entry) {
    body_ += html_heading(2, call == "decode_add" ? "decode, added to the output" : call);
    body_ += html_paragraph(
        "Bytes per element of the gradient: the floor, which the algorithm "
        "forces, and what the kernels move.",
        "soft");
    add_traffic(call, entry);
    if (call == "decode_add") return;
    const json& kernels = entry["kernel_list"];
    body_ += kernel_graph(kernels, "kernels of " + call + ", and the bytes that they move");
    add_moves(entry["move_list"]);
    const auto apart = apart_in_words(report_["fusion"], kernels, Places::FileName);
    if (apart.empty()) return;
    std::vector<std::vector<std::string>> rows;
    rows.reserve(apart.size());
    for (const auto& [who, why] : apart) rows.push_back({who, why});
    body_ += html_heading(3, "Why neighbouring sweeps are not one");
    body_ += html_table({"sweeps", "because"}, rows);
  }

  void add_moves(const json& moves) {
    std::vector<std::vector<std::string>> rows;
    for (const json& move : joined_moves(moves)) {
      const char* when = move["in_loop"].get<bool>()     ? ", in a loop"
                         : move["in_branch"].get<bool>() ? ", if the data asks for it"
                                                         : "";
      rows.push_back({move["does"].get<std::string>() + when, stream_names(move["reads"]),
                      stream_names(move["writes"]),
                      grouped(move["read_most"].get<std::int64_t>() +
                              move["written_most"].get<std::int64_t>())});
    }
    if (rows.empty()) return;
    body_ += html_heading(3, "Between kernels");
    body_ += html_table({"what", "reads", "writes", "bytes#"}, rows);
  }

  void add_numbers() {
    std::vector<std::vector<std::string>> rows;
    for (const json& param : report_["parameters"]) {
      const json range = param.value("range", json());
      rows.push_back({param["name"].get<std::string>(), value_in_words(param),
                      param["constant"].get<bool>() ? "fixed when compiled"
                      : range.is_null()             ? "any"
                                                    : range.get<std::string>()});
    }
    if (!rows.empty()) {
      body_ += html_heading(2, "Parameters");
      body_ += html_table({"parameter", "value#", "range"}, rows);
    }
    rows.clear();
    for (const json& size : report_["sizes"]) {
      rows.push_back({size["name"].get<std::string>(), value_in_words(size),
                      size["formula"].get<std::string>()});
    }
    if (rows.empty()) return;
    body_ += html_heading(2, "Sizes");
    body_ += html_table({"size", "value#", "formula"}, rows);
  }

  void add_memory() {
    body_ += html_heading(2, "Memory and ranks");
    std::vector<std::vector<std::string>> rows;
    for (const json& state : report_["states"]) {
      rows.push_back(
          {"state " + state["name"].get<std::string>(), bytes_text(state["bytes"]),
           state["type"].get<std::string>() +
               (state["in_place"].get<bool>() ? ", updated in place" : ", and a second buffer")});
    }
    rows.push_back({"workspace", bytes_text(report_["workspace_bytes"]), "during a call"});
    body_ += html_table({"memory", "bytes#", ""}, rows);
    if (!report_.contains("aggregation")) return;
    const auto how = report_["aggregation"].get<std::string>();
    body_ += html_paragraph(how.starts_with("no: ")
                                ? "Payloads of ranks do not add up: " + how.substr(4) + "."
                                : "Payloads of ranks add up " + how + ".");
    if (!report_.value("finish_is_linear", true))
      body_ +=
          html_paragraph("Takes plans that decode every rank's payload: its finish is not linear.");
  }

  void add_safety() {
    body_ += html_heading(2, "Safety");
    const auto checks = report_["checks"].get<std::vector<std::string>>();
    if (checks.empty()) {
      body_ += html_paragraph("Nothing is checked while running: all is proved.");
    } else {
      body_ += html_paragraph("Checked while running:");
      body_ += html_list(checks);
    }
    std::vector<std::vector<std::string>> rows;
    for (const json& fact : report_["safety"]) {
      rows.push_back({fact["in"].get<std::string>(), fact["what"].get<std::string>(),
                      fact["property"].get<std::string>(), fact["how"].get<std::string>()});
    }
    if (rows.empty()) return;
    body_ += "<details><summary>" +
             escaped("Accesses and loops: " + grouped(static_cast<std::int64_t>(rows.size()))) +
             "</summary>\n" + html_table({"in", "what", "property", "how"}, rows) + "</details>\n";
  }

  const json& report_;
  std::int64_t elements_;
  std::string body_;
};

}  // namespace

std::string explain_page(const json& report) {
  return ExplainPage(report).whole();
}

}  // namespace cinch::driver
