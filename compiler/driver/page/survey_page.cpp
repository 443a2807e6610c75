#include "compiler/driver/page/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/driver/page/charts.h"
#include "compiler/driver/report/survey_report.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

constexpr const char* kPlainClass = "plain";

class SurveyPage {
 public:
  explicit SurveyPage(const json& report) : report_(report) {
    std::set<std::string> families;
    for (const json& row : report["programs"]) families.insert(row["family"].get<std::string>());
    for (const std::string& family : families)
      colours_.emplace(family, colour_class(colours_.size()));
  }

  std::string whole() {
    add_head();
    add_scatter();
    add_steps();
    add_table();
    add_not_tried();
    add_tensors();
    return html_page("Gradients of " + folder_name() + " – cinch report", body_);
  }

 private:
  std::string folder_name() const {
    std::filesystem::path path(report_["folder"].get<std::string>());
    path = std::filesystem::absolute(path).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    return path.filename().string();
  }

  std::string class_of(const json& row) const {
    const auto known = colours_.find(row["family"].get<std::string>());
    return known == colours_.end() ? kPlainClass : known->second;
  }

  void add_head() {
    body_ += html_heading(1, folder_name());
    body_ += html_paragraph(
        "What every program makes of these gradients, and what a step would "
        "take.",
        "lead");
    const json& plain = report_["uncompressed"];
    std::vector<Figure> shown = {
        {grouped(static_cast<std::int64_t>(report_["tensors"].size())), "tensors"},
        {size_text(report_["gradient_bytes"].get<double>()), "of gradients as f32"},
        {milliseconds_text(plain["step_ms"]), "a step without a program"}};
    const json& rows = report_["programs"];
    if (!rows.empty() && !rows[0]["step_ms"].is_null())
      shown.push_back({milliseconds_text(rows[0]["step_ms"]),
                       "the fastest step, with " + rows[0]["program"].get<std::string>()});
    body_ += html_figures(shown);
    body_ += html_paragraph(survey_ranks(report_) + ".", "soft");
  }

  void add_scatter() {
    std::vector<ScatterPoint> points;
    for (const json& row : report_["programs"]) {
      if (row["ratio"].is_null() || row["relative_error"].is_null()) continue;
      const double ratio = row["ratio"].get<double>(), error = row["relative_error"].get<double>();
      const auto name = row["program"].get<std::string>();
      points.push_back(
          {ratio, error, name, class_of(row),
           fmt::format("{}: ratio {}, error {}", name, three_digits(ratio), three_digits(error))});
    }
    if (points.empty()) return;
    body_ += html_heading(2, "Ratio and error");
    body_ += "<p>";
    for (const auto& [family, css_class] : colours_) {
      body_ +=
          fmt::format("<span class=\"swatch {}\"></span>{} &#160; ", css_class, escaped(family));
    }
    body_ += "</p>\n";
    body_ += scatter_chart(points, "ratio: bytes of the gradients / bytes of the payloads",
                           "relative error of one step, |x - decoded| / |x|");
  }

  void add_steps() {
    std::vector<Bar> bars;
    const auto add = [&](const json& row) {
      if (row["step_ms"].is_null()) return;
      const double step = row["step_ms"].get<double>();
      bars.push_back({row["program"].get<std::string>(),
                      {{step, class_of(row), milliseconds_text(row["step_ms"])}},
                      fmt::format("{}, {}", milliseconds_text(row["step_ms"]),
                                  row["plan"].get<std::string>())});
    };
    for (const json& row : report_["programs"]) add(row);
    add(report_["uncompressed"]);
    std::ranges::stable_sort(bars, {}, [](const Bar& bar) { return bar.parts[0].amount; });
    body_ += html_heading(2, "Time of a step");
    body_ += bar_chart(bars, "predicted time of a step with every program");
    for (const ColumnNote& note : survey_notes(report_))
      body_ += html_paragraph(note.column + ": " + note.text + ".", "soft");
  }

  void add_table() {
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> swatches;
    for (const json& row : report_["programs"]) {
      swatches.push_back(class_of(row));
      rows.push_back({row["program"].get<std::string>(), row["family"].get<std::string>(),
                      digits_or_dash(row["ratio"]), error_text(row["relative_error"]),
                      grouped(row["payload_bytes"].get<std::int64_t>()),
                      milliseconds_text(row["encode_ms"]), milliseconds_text(row["decode_ms"]),
                      milliseconds_text(row["network_ms"]), milliseconds_text(row["step_ms"]),
                      row["plan"].get<std::string>()});
    }
    body_ += html_heading(2, "All numbers");
    body_ += html_table({"program", "family", "ratio#", "error#", "payload bytes#", "encode#",
                         "decode#", "network#", "step#", "plan"},
                        rows, swatches);
  }

  void add_not_tried() {
    std::vector<std::vector<std::string>> rows;
    for (const json& row : report_["not_tried"])
      rows.push_back({row["program"].get<std::string>(), row["reason"].get<std::string>()});
    for (const json& row : report_["programs"]) {
      if (!row["note"].is_null())
        rows.push_back({row["program"].get<std::string>(),
                        "no prediction: " + row["note"].get<std::string>()});
    }
    if (rows.empty()) return;
    body_ += html_heading(2, "What could not be tried");
    body_ += html_table({"program", "because"}, rows);
  }

  void add_tensors() {
    std::vector<std::vector<std::string>> rows;
    for (const json& tensor : report_["tensors"]) {
      std::string shape;
      for (const json& size : tensor["shape"])
        shape += (shape.empty() ? "" : " x ") + grouped(size.get<std::int64_t>());
      rows.push_back({tensor["name"].get<std::string>(), shape,
                      grouped(tensor["elements"].get<std::int64_t>())});
    }
    body_ += html_heading(2, "Tensors");
    body_ += "<details><summary>" +
             escaped(counted(static_cast<std::int64_t>(rows.size()), "tensor")) + "</summary>\n" +
             html_table({"tensor", "shape", "elements#"}, rows) + "</details>\n";
  }

  const json& report_;
  std::map<std::string, std::string> colours_;  // by family
  std::string body_;
};

}  // namespace

std::string survey_page(const json& report) {
  return SurveyPage(report).whole();
}

}  // namespace cinch::driver
