// Text tables whose columns are as wide as their contents.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cinch::driver {

struct TableColumn {
  std::string above, head;  // two heading lines; if `above` is empty in all columns, it is omitted
  bool is_text = false;     // left-aligned
};

// The last column may be wrapped; it explains the others.
class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // With line ends. No line is longer than `width` if the columns before the last allow it.
  std::string text(std::size_t width) const;

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A number with three significant digits, for tables: "0.075", "53.6", "1234".
std::string short_number(double value);

}  // namespace cinch::driver
