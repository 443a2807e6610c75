// Bodies of text_table.h.
#include "compiler/driver/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text_layout.h"

namespace cinch::driver {

namespace {

using TableRow = std::vector<std::string>;

// The least room for a wrapped last column, and for names. Where there is less for the last column,
// it goes below the others.
constexpr std::size_t kNarrowest = 24, kNarrowestName = 8, kIndentBelow = 4;

std::string aligned(const std::string& text, std::size_t width, bool is_text) {
  const std::string padding(width - std::min(width, num_characters(text)), ' ');
  return is_text ? text + padding : padding + text;
}

class TableLayout {
 public:
  TableLayout(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
              std::size_t indent, std::size_t width)
      : columns_(columns), num_beside_(columns.size()), indent_(indent) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      widths_.push_back(columns[i].width > 0 ? columns[i].width : widest(i, rows));
    }
    const bool has_text = is_as_wide(columns.back());
    if (!has_text && end() > width) gap_ = 1;
    if (has_text) {
      make_room_for_text(width);
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
        line += aligned(cell, widths_[i], columns_[i].is_text);
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

  std::size_t widest(std::size_t column, const std::vector<TableRow>& rows) const {
    std::size_t most =
        std::max(num_characters(columns_[column].above), num_characters(columns_[column].head));
    for (const TableRow& row : rows) most = std::max(most, num_characters(row[column]));
    return most;
  }

  std::size_t end() const {
    std::size_t sum = indent_ + gap_ * (widths_.size() - 1);
    for (const std::size_t width : widths_) sum += width;
    return sum;
  }

  void make_room_for_text(std::size_t width) {
    std::size_t begin = end() - widths_.back();
    if (widths_.back() > kNarrowest && begin + kNarrowest > width) {
      --num_beside_;
      begin = kIndentBelow;
    }
    widths_.back() = std::max(width, begin + kNarrowest) - begin;
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

}  // namespace cinch::driver
