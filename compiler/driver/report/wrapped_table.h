// Text tables whose cells wrap within their columns, so that the table fits its width.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace cinch::driver {

struct WrappedColumn {
  std::string heading;
  std::size_t width = 0;  // longer words are cut
  bool is_right = false;  // right-aligned, for numbers
};

class WrappedTable {
 public:
  WrappedTable(std::vector<WrappedColumn> columns, std::size_t indent)
      : columns_(std::move(columns)), indent_(indent) {}

  /// Adds a row with one cell per column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// The headings and all rows; every line ends with a line end, and no line has trailing blanks.
  std::string text() const;

 private:
  std::string row(const std::vector<std::string>& cells) const;

  std::vector<WrappedColumn> columns_;
  std::size_t indent_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cinch::driver
