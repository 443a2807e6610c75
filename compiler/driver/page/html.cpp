#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/driver/page/pages.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {
namespace {

// The colours of docs/gallery's pictures (examples/pytorch/chart.py).
constexpr std::array kPageColours = {"#4f7fe0", "#e0a100", "#f2644b", "#3ca951",
                                     "#b07552", "#a463f2", "#45b09b", "#ee77a8",
                                     "#8a8f98", "#8f9c00", "#5fa3d9", "#c76a1a"};

constexpr std::string_view kPageStyle =
    R"(:root{--paper:#fff;--ink:#24292f;--soft:#57606a;--grid:#d8dee4;--line:#8c959f;--box:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--grid:#2d333b;--line:#6e7681;--box:#161b22}}
:root{color-scheme:light dark}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:960px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:30px;margin:0 0 4px}h2{font-size:21px;margin:40px 0 8px;border-bottom:1px solid var(--grid)}h3{font-size:16px;margin:24px 0 6px}
p{margin:6px 0}.lead{font-size:18px}.soft{color:var(--soft)}
code{font-family:ui-monospace,monospace;font-size:.92em}
.figures{display:flex;flex-wrap:wrap;gap:12px 36px;margin:16px 0}.figures div{min-width:90px}.figures b{display:block;font-size:24px;line-height:1.2}
.figures span{color:var(--soft);font-size:14px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:14px;margin:8px 0}th,td{text-align:left;vertical-align:top;padding:4px 16px 4px 0;border-bottom:1px solid var(--grid)}
th{color:var(--soft);font-weight:600}.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
.swatch{display:inline-block;width:11px;height:11px;margin-right:7px;border-radius:2px}
svg{display:block;width:100%;min-width:700px;height:auto;margin:8px 0}td:first-child{white-space:nowrap}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg text.soft{fill:var(--soft)}
svg text.strong{font-weight:600}svg text.small{font-size:11px;paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}
.grid{stroke:var(--grid);fill:none}.line{stroke:var(--line);fill:none}.box{fill:var(--box);stroke:var(--line)}.plain{fill:var(--grid);background:var(--grid)}.arrow{fill:var(--line)}
details{margin:8px 0}summary{cursor:pointer;color:var(--soft)}
)";

using Entity = std::pair<char, std::string_view>;
constexpr std::array kEntities = {Entity{'&', "&amp;"}, Entity{'<', "&lt;"}, Entity{'>', "&gt;"},
                                  Entity{'"', "&quot;"}, Entity{'\'', "&#39;"}};

// The number of bytes of the character at `at`; 0 if HTML does not allow it.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(at);
  if (first < 0x80) return first >= 0x20 || first == '\n' || first == '\t' ? 1 : 0;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  std::uint32_t code = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3fU);
  }
  const bool is_short = code < (length == 2 ? 0x80U : length == 3 ? 0x800U : 0x10000U);
  const bool is_none = (code >= 0xd800 && code < 0xe000) || code > 0x10ffff || (code | 1) == 0xffff;
  return is_short || is_none ? 0 : length;
}

std::string opened(std::string_view tag, std::string_view css_class) {
  return css_class.empty() ? fmt::format("<{}>", tag)
                           : fmt::format("<{} class=\"{}\">", tag, css_class);
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character_length(text, at);
    if (length != 1) {
      out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(at, length);
      at += length == 0 ? 1 : length;
      continue;
    }
    const char c = text[at++];
    const auto* const entity = std::ranges::find(kEntities, c, &Entity::first);
    if (entity == kEntities.end()) {
      out += c;
    } else {
      out += entity->second;
    }
  }
  return out;
}

std::string html_page(std::string_view title, std::string_view body) {
  std::string colours;
  for (std::size_t i = 0; i < kPageColours.size(); ++i)
    colours += fmt::format(".c{0}{{fill:{1};background:{1}}}", i, kPageColours[i]);
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n{}{}\n</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n"
      "</html>\n",
      escaped(title), kPageStyle, colours, body);
}

std::string html_heading(int level, std::string_view text) {
  return fmt::format("<h{0}>{1}</h{0}>\n", level, escaped(text));
}

std::string html_paragraph(std::string_view text, std::string_view css_class) {
  return opened("p", css_class) + escaped(text) + "</p>\n";
}

std::string html_figures(const std::vector<Figure>& list) {
  std::string text = "<div class=\"figures\">\n";
  for (const Figure& figure : list) {
    text += fmt::format("<div><b>{}</b><span>{}</span></div>\n", escaped(figure.number),
                        escaped(figure.what));
  }
  return text + "</div>\n";
}

std::string html_table(const std::vector<std::string>& headings,
                       const std::vector<std::vector<std::string>>& rows,
                       const std::vector<std::string>& swatches) {
  std::string text = "<div class=\"scroll\"><table>\n<thead><tr>";
  std::vector<std::string_view> classes;
  for (std::string_view name : headings) {
    classes.emplace_back(name.ends_with('#') ? "n" : "");
    if (name.ends_with('#')) name.remove_suffix(1);
    text += opened("th", classes.back()) + escaped(name) + "</th>";
  }
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    text += "<tr>";
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      text += opened("td", classes[c]);
      const bool has_swatch = c == 0 && r < swatches.size() && !swatches[r].empty();
      if (has_swatch) text += fmt::format("<span class=\"swatch {}\"></span>", swatches[r]);
      text += escaped(rows[r][c]) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table></div>\n";
}

std::string colour_class(std::size_t n) {
  return fmt::format("c{}", n % kPageColours.size());
}

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
        "What every program makes of these gradients, and what a step would take.", "lead");
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
