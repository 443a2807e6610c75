#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {
std::string grouped(std::int64_t number) {
  constexpr std::size_t kFewDigits = 4;
  std::string text = std::to_string(number);
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  if (text.size() - first <= kFewDigits) return text;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, ",");
  return text;
}

std::string three_digits(double number) {
  const double size = std::abs(number);
  if (size >= 99.95) return fmt::format("{:.0f}", number);
  if (size >= 9.995) return fmt::format("{:.1f}", number);
  if (size >= 0.9995 || size == 0) return fmt::format("{:.2f}", number);
  return fmt::format("{:.3g}", number);
}

std::string size_text(double bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return three_digits(bytes) + " " + kUnits[unit];
}

std::string time_text(double seconds) {
  if (seconds > 0 && seconds < 0.9995e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " µs";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  return three_digits(seconds) + " s";
}

namespace {

bool is_short(double milliseconds) {
  constexpr double kShort = 0.01;
  return milliseconds > 0 && milliseconds < kShort;
}

std::string noun(bool is_one, std::string_view what) {
  if (is_one) return std::string(what);
  return what.ends_with('y') ? fmt::format("{}ies", what.substr(0, what.size() - 1))
                             : fmt::format("{}s", what);
}

}  // namespace

std::string in_milliseconds(double milliseconds) {
  if (is_short(milliseconds)) return time_text(milliseconds / 1e3);
  return fmt::format("{:.3f} ms", milliseconds);
}

std::string cell_in_milliseconds(double milliseconds) {
  if (is_short(milliseconds)) return time_text(milliseconds / 1e3);
  return short_number(milliseconds);
}

std::string counted(std::int64_t number, std::string_view what) {
  return grouped(number) + " " + noun(number == 1, what);
}

std::string plainly_counted(std::uint64_t number, std::string_view what) {
  return fmt::format("{} {}", number, noun(number == 1, what));
}

std::string did_you_mean(std::string_view near) {
  return near.empty() ? std::string() : fmt::format("; did you mean '{}'?", near);
}

std::size_t num_characters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

std::string padded(const std::string& text, std::size_t width) {
  const std::size_t length = num_characters(text);
  return text + std::string(width > length ? width - length : 0, ' ');
}

std::string shortened(const std::string& text, std::size_t width) {
  if (num_characters(text) <= width) return text;
  std::istringstream words(text);
  std::string kept;
  for (std::string word; words >> word;) {
    std::string longer = kept;
    longer.append(kept.empty() ? "" : " ").append(word);
    if (num_characters(longer) + 2 > width) break;
    kept = std::move(longer);
  }
  while (kept.ends_with(',') || kept.ends_with(':') || kept.ends_with(';')) kept.pop_back();
  return kept.empty() ? "…" : kept + " …";
}

std::string shortened_in_middle(const std::string& text, std::size_t width) {
  const std::size_t length = num_characters(text);
  if (length <= width) return text;
  const std::size_t last = width / 2, first = width - std::min(width, last + 1);
  std::string kept;
  std::size_t at = 0;  // the character that `c` belongs to, from 1 on
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
    if (begins && ++at == first + 1) kept += "…";
    if (at <= first || at > length - last) kept += c;
  }
  return kept;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::istringstream words(text);
  std::string lines;
  std::size_t at = indent;  // the end of the current line
  for (std::string word; words >> word;) {
    const std::size_t length = num_characters(word);
    if (at > indent && at + 1 + length > width) {
      lines += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      lines += " ";
      ++at;
    }
    lines += word;
    at += length;
  }
  return lines;
}

namespace {

using TableRow = std::vector<std::string>;

// The least room for a wrapped last column, and for names. Where there is less for the last column,
// it goes below the others.
constexpr std::size_t kNarrowest = 24, kNarrowestName = 8, kIndentBelow = 4;

class TableLayout {
 public:
  TableLayout(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
              std::size_t indent, std::size_t width)
      : columns_(columns), num_beside_(columns.size()), indent_(indent) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      // A number is never cut: rather the table is wider.
      const bool may_wrap = columns[i].width > 0 && columns[i].is_text;
      std::size_t width_of = columns[i].width;
      if (!may_wrap) {
        width_of =
            std::max({width_of, num_characters(columns[i].above), num_characters(columns[i].head)});
        for (const TableRow& row : rows) width_of = std::max(width_of, num_characters(row[i]));
      }
      widths_.push_back(width_of);
    }
    const bool has_text = is_as_wide(columns.back());
    if (!has_text && end() > width) gap_ = 1;
    if (has_text) {
      std::size_t begin = end() - widths_.back();
      if (widths_.back() > kNarrowest && begin + kNarrowest > width) {
        --num_beside_;
        begin = kIndentBelow;
      }
      widths_.back() = std::max(width, begin + kNarrowest) - begin;
    } else if (is_as_wide(columns[0]) && end() > width) {
      widths_[0] -= std::min(end() - width, widths_[0] - std::min(widths_[0], kNarrowestName));
    }
  }

  std::string lines(const TableRow& row) const {
    std::vector<TableRow> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(lines_of(row, i));
      if (i < num_beside_) height = std::max(height, cells.back().size());
    }
    std::string text;
    for (std::size_t l = 0; l < height; ++l) {
      std::string line(indent_, ' ');
      for (std::size_t i = 0; i < num_beside_; ++i) {
        const std::string cell = l < cells[i].size() ? cells[i][l] : "";
        line += i == 0 ? "" : std::string(gap_, ' ');
        const std::string padding(widths_[i] - std::min(widths_[i], num_characters(cell)), ' ');
        line += columns_[i].is_text ? cell + padding : padding + cell;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    if (num_beside_ == row.size()) return text;
    for (const std::string& line : cells.back()) {
      text.append(kIndentBelow, ' ').append(line).append("\n");
    }
    return text;
  }

 private:
  static bool is_as_wide(const TableColumn& column) { return column.is_text && column.width == 0; }

  std::size_t end() const {
    std::size_t sum = indent_ + gap_ * (widths_.size() - 1);
    for (const std::size_t width : widths_) sum += width;
    return sum;
  }

  TableRow lines_of(const TableRow& row, std::size_t column) const {
    const std::size_t width = widths_[column];
    if (num_characters(row[column]) <= width) return {row[column]};
    const bool is_last = column + 1 == row.size(), may_cut = columns_[column].width > 0;
    if (!is_last && !may_cut) return {shortened_in_middle(row[column], width)};
    TableRow lines;
    std::istringstream whole(wrapped(row[column], 0, width));
    for (std::string line; std::getline(whole, line);)
      lines.push_back(may_cut ? fit_to_width(line, width) : line);
    return lines;
  }

  const std::vector<TableColumn>& columns_;
  std::size_t num_beside_;  // columns beside each other; another one is below them
  std::size_t indent_, gap_ = 2;
  std::vector<std::size_t> widths_;
};

}  // namespace

std::string TextTable::text(std::size_t width) const {
  const TableLayout layout(columns_, rows_, indent_, width);
  TableRow above, head;
  for (const TableColumn& column : columns_) {
    above.push_back(column.above);
    head.push_back(column.head);
  }
  const bool has_above =
      std::ranges::any_of(above, [](const std::string& s) { return !s.empty(); });
  std::string text = has_above ? layout.lines(above) : "";
  text += layout.lines(head);
  for (const TableRow& row : rows_) text += layout.lines(row);
  return text;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  const int digits = size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return fmt::format("{:.{}f}", value, digits);
}

namespace {

using nlohmann::json;

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
    // A few elements may be far less than the header of their payload.
    const json& ratio = row["ratio"];
    const std::string ratio_text = ratio.is_null() || ratio >= 0.1 ? digits_or_dash(ratio)
                                   : ratio < 0.01                  ? "<0.01"
                                                  : fmt::format("{:.2f}", ratio.get<double>());
    table.add({shortened_in_middle(row["program"].get<std::string>(), name_width), ratio_text,
               error_text(row["relative_error"]), size_text(row["payload_bytes"].get<double>()),
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

// --by-tensor.
std::string survey_by_tensor(const json& report, std::size_t width) {
  std::string text;
  for (const json& row : report["programs"]) {
    if (!row.contains("by_tensor")) continue;
    TextTable table({{"", "tensor", true}, {"", "elements"}, {"payload", "bytes"}, {"", "error"}});
    for (const json& of : row["by_tensor"]) {
      const json& error = of["relative_error"];
      table.add({of["name"].get<std::string>(), grouped(of["elements"].get<std::int64_t>()),
                 grouped(of["payload_bytes"].get<std::int64_t>()),
                 error.is_null() ? "-" : short_number(error.get<double>())});
    }
    text += "\n" + row["program"].get<std::string>() + "\n" + table.text(width);
  }
  return text;
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
  text += survey_by_tensor(report, width);
  if (!report["not_tried"].empty()) text += "\nnot tried\n";
  for (const json& row : report["not_tried"]) {
    const std::string start = "  " + padded(row["program"].get<std::string>(), names) + "  ";
    text += start + wrapped(row["reason"].get<std::string>(), num_characters(start), width) + "\n";
  }
  return text;
}

}  // namespace cinch::driver
