// Bodies of text_table.h.
#include "compiler/driver/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "compiler/driver/report/text_layout.h"

namespace cinch::driver {

namespace {

using TableRow = std::vector<std::string>;

// The least width of a wrapped last column. With less room it goes below the others.
constexpr std::size_t kNarrowest = 24, kIndentBelow = 4;

std::string aligned(const std::string& text, std::size_t width, bool is_text) {
  const std::string padding(width - std::min(width, num_characters(text)), ' ');
  return is_text ? text + padding : padding + text;
}

class TableLayout {
 public:
  TableLayout(const std::vector<TableColumn>& columns, const std::vector<TableRow>& rows,
              std::size_t width)
      : columns_(columns) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      widths_.push_back(
          std::max(num_characters(columns[i].above), num_characters(columns[i].head)));
      for (const TableRow& row : rows) widths_[i] = std::max(widths_[i], num_characters(row[i]));
    }
    const bool has_text = columns.back().is_text;
    gap_ = has_text || width_of_all(2) <= width ? 2 : 1;
    if (!has_text) return;
    indent_ = width_of_all(gap_) - widths_.back();
    is_below_ = widths_.back() > kNarrowest && indent_ + kNarrowest > width;
    if (is_below_) indent_ = kIndentBelow;
    end_ = std::max(width, indent_ + kNarrowest);
  }

  std::string line(const TableRow& row) const {
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_wrapped = i + 1 == row.size() && columns_[i].is_text;
      if (i > 0)
        text += is_wrapped && is_below_ ? "\n" + std::string(indent_, ' ') : std::string(gap_, ' ');
      text += is_wrapped ? wrapped(row[i], indent_, end_)
                         : aligned(row[i], widths_[i], columns_[i].is_text);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  }

 private:
  std::size_t width_of_all(std::size_t gap) const {
    std::size_t sum = gap * (widths_.size() - 1);
    for (const std::size_t width : widths_) sum += width;
    return sum;
  }

  const std::vector<TableColumn>& columns_;
  std::vector<std::size_t> widths_;
  // For the wrapped column: begin and end of its lines, and whether it is below the others.
  std::size_t gap_ = 2, indent_ = 0, end_ = 0;
  bool is_below_ = false;
};

}  // namespace

std::string TextTable::text(std::size_t width) const {
  const TableLayout layout(columns_, rows_, width);
  TableRow above, head;
  for (const TableColumn& column : columns_) {
    above.push_back(column.above);
    head.push_back(column.head);
  }
  const bool has_above =
      std::ranges::any_of(above, [](const std::string& s) { return !s.empty(); });
  std::string text = has_above ? layout.line(above) : "";
  text += layout.line(head);
  for (const TableRow& row : rows_) text += layout.line(row);
  return text;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  const int digits = size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return fmt::format("{:.{}f}", value, digits);
}

}  // namespace cinch::driver
