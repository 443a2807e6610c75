// Bodies of wrapped_table.h.
#include "compiler/driver/report/wrapped_table.h"

#include <algorithm>
#include <sstream>

#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text_layout.h"

namespace cinch::driver {

namespace {

constexpr std::size_t kGap = 2;

std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream whole(wrapped(text, 0, width));
  for (std::string line; std::getline(whole, line);) lines.push_back(fit_to_width(line, width));
  return lines;
}

}  // namespace

std::string WrappedTable::row(const std::vector<std::string>& cells) const {
  std::vector<std::vector<std::string>> wrapped_cells;
  std::size_t height = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    wrapped_cells.push_back(lines_of(cells[c], columns_[c].width));
    height = std::max(height, wrapped_cells.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < height; ++i) {
    std::string line(indent_, ' ');
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const auto& lines = wrapped_cells[c];
      const std::string cell = i < lines.size() ? lines[i] : "";
      const std::size_t width = columns_[c].width;
      const std::string blanks(width - std::min(width, num_characters(cell)), ' ');
      line += c == 0 ? "" : std::string(kGap, ' ');
      line += columns_[c].is_right ? blanks + cell : cell + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string WrappedTable::text() const {
  std::vector<std::string> headings;
  headings.reserve(columns_.size());
  for (const WrappedColumn& column : columns_) headings.push_back(column.heading);
  std::string text = row(headings);
  for (const auto& cells : rows_) text += row(cells);
  return text;
}

}  // namespace cinch::driver
