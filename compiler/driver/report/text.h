// Text for people: numbers, lines of a width, tables.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::driver {
/// "1000", "25,557,032": groups of three digits if there are five digits or more.
std::string grouped(std::int64_t number);

/// "964 B", "12.3 kB", "4.13 MB": three digits, powers of 1000.
std::string size_text(double bytes);

/// "801 ns", "412 µs", "12.3 ms", "1.50 s": three digits.
std::string time_text(double seconds);

/// Times for lines and columns whose usual unit is the millisecond: "0.412 ms", "12.345 ms" and
/// "0.412", "12.3". Below 10 µs, where these have a digit or none, both are as time_text's.
std::string in_milliseconds(double milliseconds);
std::string cell_in_milliseconds(double milliseconds);

/// "32.0", "1205", "0.0312": three digits, or all digits before the point.
std::string three_digits(double number);

/// "1 sweep", "2 sweeps", "1,048,576 elements".
std::string counted(std::int64_t number, std::string_view what);
/// The same with plain digits: "1 entry", "1048576 entries".
std::string plainly_counted(std::uint64_t number, std::string_view what);

/// "; did you mean 'topk'?" behind a message about a wrong word; empty if no word is near.
std::string did_you_mean(std::string_view near);

// Text for people in lines of a given width. Characters are counted, not bytes of UTF-8.

std::size_t num_characters(const std::string& text);

/// `text`, with blanks behind it up to `width` characters.
std::string padded(const std::string& text, std::size_t width);

/// `text`, ended with "…" behind the last word that leaves room for it where it is longer than
/// `width` characters.
std::string shortened(const std::string& text, std::size_t width);

/// `text`, with "…" instead of what is between its beginning and its end where it is longer than
/// `width` characters: names that differ at either end stay apart.
std::string shortened_in_middle(const std::string& text, std::size_t width);

/// `text` with line ends and `indent` blanks between words, such that no line is longer than
/// `width` where words allow it. The first line is taken to begin at `indent`.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

struct TableColumn {
  std::string above, head;  // two lines; `above` may be empty in all columns, and is then left out
  bool is_text = false;     // left-aligned
  // Text wraps within this width, and longer words are cut; numbers may be wider. 0: the column is
  // as wide as what is in it.
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

// The text of `cinch report`. The report is JSON: folder, tensors, elements, gradient_bytes, ranks,
// link, latency_us, threads; uncompressed and each of programs, fastest step first: program,
// family, ratio, payload_bytes, relative_error, exact_tensors, encode_ms, decode_ms, step_ms,
// network_ms, plan, note; not_tried: program and reason.

/// No line is longer than `width` (at least 75).
std::string survey_text(const nlohmann::json& report, std::size_t width);

/// How the numbers of a column were computed.
struct ColumnNote {
  std::string column, text;
};
std::vector<ColumnNote> survey_notes(const nlohmann::json& report);

/// "4 ranks, each with a link of 1Gbit/s and 50 µs".
std::string survey_ranks(const nlohmann::json& report);

/// Milliseconds in readable form; "-" for null.
std::string milliseconds_text(const nlohmann::json& milliseconds);
/// "0.716", "2e-04"; "-" for null.
std::string error_text(const nlohmann::json& error);
/// Three digits; "-" for null.
std::string digits_or_dash(const nlohmann::json& number);

}  // namespace cinch::driver
