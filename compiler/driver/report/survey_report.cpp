#include "compiler/driver/report/survey_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

std::string payload_size(const json& row) {
  return size_text(row["payload_bytes"].get<double>());
}

// Why programs have no prediction: each reason once, with a number that stands in the table.
class Footnotes {
 public:
  /// "[1]".
  std::string number_of(const std::string& reason) {
    auto known = std::ranges::find(reasons_, reason);
    if (known == reasons_.end()) known = reasons_.insert(known, reason);
    return fmt::format("[{}]", known - reasons_.begin() + 1);
  }

  std::string text(std::size_t width) const {
    std::string lines;
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      const std::string start = fmt::format("[{}] ", i + 1);
      lines += start + wrapped("no prediction: " + reasons_[i], start.size(), width) + "\n";
    }
    return lines;
  }

 private:
  std::vector<std::string> reasons_;
};

// A few elements may be far less than the header of their payload.
std::string ratio_text(const json& ratio) {
  constexpr double kLeast = 0.01, kTwoDigits = 0.1;
  if (ratio.is_null() || ratio >= kTwoDigits) return digits_or_dash(ratio);
  return ratio < kLeast ? "<0.01" : fmt::format("{:.2f}", ratio.get<double>());
}

std::string survey_table(const json& report, std::size_t names, std::size_t width,
                         Footnotes& footnotes) {
  constexpr std::size_t kNumbersWidth = 63;
  const std::size_t name_width = std::min(names, width - kNumbersWidth);
  TextTable table({{"", "program", true, name_width},
                   {"", "ratio", false, 5},
                   {"", "error", false, 6},
                   {"", "payload", false, 8},
                   {"", "encode", false, 7},
                   {"", "decode", false, 7},
                   {"", "step", false, 7},
                   {"", "plan", true, 9}});
  const auto add = [&](const json& row) {
    const std::string plan = row["note"].is_null()
                                 ? row["plan"].get<std::string>()
                                 : footnotes.number_of(row["note"].get<std::string>());
    table.add({shortened_in_middle(row["program"].get<std::string>(), name_width),
               ratio_text(row["ratio"]), error_text(row["relative_error"]), payload_size(row),
               milliseconds_text(row["encode_ms"]), milliseconds_text(row["decode_ms"]),
               milliseconds_text(row["step_ms"]), plan});
  };
  bool is_told = false;  // what no program takes, at its place
  const json& plain = report["uncompressed"];
  for (const json& row : report["programs"]) {
    const bool is_slower = row["step_ms"].is_null() || row["step_ms"] > plain["step_ms"];
    if (is_slower && !is_told) add(plain);
    is_told |= is_slower;
    add(row);
  }
  if (!is_told) add(plain);
  return table.text(width);
}

}  // namespace

std::string milliseconds_text(const json& milliseconds) {
  return milliseconds.is_null() ? "-" : time_text(milliseconds.get<double>() / 1e3);
}

std::string error_text(const json& error) {
  if (error.is_null() || error.get<double>() == 0 || error.get<double>() >= 1e-2)
    return digits_or_dash(error);
  return fmt::format("{:.0e}", error.get<double>());
}

std::string digits_or_dash(const json& number) {
  return number.is_null() ? "-" : three_digits(number.get<double>());
}

std::string survey_ranks(const json& report) {
  return fmt::format("{} ranks, each with a link of {} and {:g} µs", report["ranks"].get<int>(),
                     report["link"].get<std::string>(), report["latency_us"].get<double>());
}

std::vector<ColumnNote> survey_notes(const json& report) {
  const json& rows = report["programs"];
  const auto any = [&](const auto& holds) { return std::ranges::any_of(rows, holds); };
  std::vector<ColumnNote> notes = {
      {"error", "|x - decoded| / |x| of the first step; error feedback makes up for it later"},
      {"encode, decode", "all tensors, one after the other, measured here"},
      {"step", fmt::format("predicted for the best plan of {}, from times of calls on {} of this "
                           "machine; nothing was sent",
                           survey_ranks(report),
                           counted(report["threads"].get<std::int64_t>(), "thread"))}};
  if (any([](const json& row) { return row["decode_ms"].is_null(); }))
    notes[1].text += "; a `sync` body has one call for both";
  if (any([](const json& row) { return row["exact_tensors"].get<std::size_t>() > 0; }))
    notes.push_back({"payload", "programs on matrices leave tensors of one dimension as they are"});
  return notes;
}

std::string survey_text(const json& report, std::size_t width) {
  const auto tensors = static_cast<std::int64_t>(report["tensors"].size());
  std::string text = fmt::format("{}: {}, {}, {}\n", report["folder"].get<std::string>(),
                                 counted(tensors, "tensor"),
                                 counted(report["elements"].get<std::int64_t>(), "element"),
                                 size_text(report["gradient_bytes"].get<double>()));
  text += survey_ranks(report) + "\n\n";
  std::size_t names = num_characters(report["uncompressed"]["program"].get<std::string>());
  for (const json& row : report["programs"])
    names = std::max(names, num_characters(row["program"].get<std::string>()));
  Footnotes footnotes;
  text += survey_table(report, names, width, footnotes) + "\n";
  constexpr std::size_t kColumnWidth = 16;
  for (const ColumnNote& note : survey_notes(report)) {
    const std::string start = padded(note.column, kColumnWidth);
    text += start + wrapped(note.text, num_characters(start), width) + "\n";
  }
  text += footnotes.text(width);
  if (!report["not_tried"].empty()) text += "\nnot tried\n";
  for (const json& row : report["not_tried"]) {
    const std::string start = "  " + padded(row["program"].get<std::string>(), names) + "  ";
    text += start + wrapped(row["reason"].get<std::string>(), num_characters(start), width) + "\n";
  }
  return text;
}

}  // namespace cinch::driver
