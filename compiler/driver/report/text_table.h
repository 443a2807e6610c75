// Tables for people.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cinch::driver {

struct TableColumn {
  std::string above, head;  // two lines; `above` may be empty in all columns, and is then left out
  bool is_text = false;     // left-aligned
  // Cells wrap within this width, and longer words are cut. 0: the column is as wide as what is in
  // it.
  std::size_t width = 0;
};

// If the last column is text without a width, its cells wrap within the room that the others leave.
// Else names in a first column of text without a width are shortened where the table has no room.
class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns, std::size_t indent = 0)
      : columns_(std::move(columns)), indent_(indent) {}
  /// As many cells as there are columns.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Every line ends with a line end, none has blanks before it. No line is longer than `width`
  /// where the other columns allow it.
  std::string text(std::size_t width) const;

 private:
  std::vector<TableColumn> columns_;
  std::size_t indent_;
  std::vector<std::vector<std::string>> rows_;
};

// A number with three significant digits, for tables: "0.075", "53.6", "1234".
std::string short_number(double value);

}  // namespace cinch::driver
