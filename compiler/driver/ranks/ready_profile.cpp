#include "compiler/driver/ranks/sync_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compiler/driver/process/files.h"
#include "runtime/core/json.h"
#include "runtime/core/numbers/parse_number.h"

namespace cinch::driver {
namespace {

using nlohmann::json;
constexpr double kMicroseconds = 1e-6, kMostMicroseconds = 3600e6;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// The most elements of a plan's tensor.
constexpr double kMostElems = 4294967295.0;

// One tensor of the file.
struct Row {
  std::string where, name;
  std::optional<double> num_elems, gap_us, ready_us;
};

[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw CommandError(ExitCode::AtFault, where + ": " + why);
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    std::string cell(line.substr(begin, end - begin));
    while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\r')) cell.pop_back();
    cells.push_back(cell.substr(std::min(cell.find_first_not_of(' '), cell.size())));
    begin = end + 1;
  }
  return cells;
}

std::vector<Row> rows_of_csv(const std::string& path, std::string_view text) {
  std::vector<Row> rows;
  std::map<std::string, std::size_t> columns;
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string where = fmt::format("{}:{}", path, ++line_number);
    if (line.find('"') != std::string_view::npos) refuse(where, "quoted cells are not read");
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (columns.empty()) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (columns.emplace(cells[i], i).second) continue;
        refuse(where, fmt::format("there are two columns {}", cells[i]));
      }
      continue;
    }
    const auto cell = [&](const char* column) -> std::optional<std::string> {
      const auto found = columns.find(column);
      if (found == columns.end()) return std::nullopt;
      if (found->second >= cells.size()) refuse(where, fmt::format("there is no {}", column));
      return cells[found->second];
    };
    const auto number = [&](const char* column) -> std::optional<double> {
      const auto found = cell(column);
      if (!found) return std::nullopt;
      const auto known = parse_number(*found);
      if (!known) refuse(where, fmt::format("{} is '{}', which is not a number", column, *found));
      return known;
    };
    rows.push_back({where, cell("name").value_or(""), number("numel"), number("ready_gap_us"),
                    number("ready_us")});
  }
  return rows;
}

json list_of_json(const std::string& path, const std::string& text) {
  try {
    return rt::parse_user_json(text);
  } catch (const std::invalid_argument& error) {
    refuse(path, error.what());
  }
}

std::vector<Row> rows_of_json(const std::string& path, const std::string& text) {
  const json list = list_of_json(path, text);
  if (!list.is_array()) refuse(path, "not a JSON array of tensors");
  std::vector<Row> rows;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = fmt::format("{}: entry {}", path, i);
    const json& entry = list[i];
    if (!entry.is_object()) refuse(where, "not an object");
    const auto number = [&](const char* key) -> std::optional<double> {
      if (!entry.contains(key)) return std::nullopt;
      if (!entry[key].is_number()) refuse(where, fmt::format("{} is not a number", key));
      return entry[key].get<double>();
    };
    const bool is_named = entry.contains("name") && entry["name"].is_string();
    rows.push_back({where, is_named ? entry["name"].get<std::string>() : "", number("numel"),
                    number("ready_gap_us"), number("ready_us")});
  }
  return rows;
}

// When the tensor is ready, given that the one before it was ready at `before`.
double ready_us(const Row& row, double before, bool is_first) {
  if (!row.gap_us && !row.ready_us) refuse(row.where, "neither ready_gap_us nor ready_us");
  if (!std::isfinite(row.gap_us.value_or(0)) || !std::isfinite(row.ready_us.value_or(0))) {
    refuse(row.where, fmt::format("{} has a time that is not a finite number", row.name));
  }
  const double ready = row.gap_us ? before + *row.gap_us : *row.ready_us;
  const bool falls = ready < before || (row.ready_us && *row.ready_us < before - 1);
  if (falls && is_first) {
    refuse(row.where, fmt::format("{} is ready before time 0: times are not negative", row.name));
  }
  if (falls) {
    refuse(row.where,
           fmt::format("{} is ready before the tensor ahead of it: times do not fall", row.name));
  }
  if (ready > kMostMicroseconds) {
    refuse(row.where, fmt::format("{} is ready after more than an hour", row.name));
  }
  return ready;
}

}  // namespace

std::vector<ReadyTensor> read_profile(const std::string& path) {
  std::string text = read_text_file(path);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const bool is_json = first < text.size() && (text[first] == '[' || text[first] == '{');
  const std::vector<Row> rows = is_json ? rows_of_json(path, text) : rows_of_csv(path, text);
  if (rows.empty()) refuse(path, "a profile without tensors");
  std::vector<ReadyTensor> tensors;
  std::set<std::string> names;
  double time_us = 0;
  for (const Row& row : rows) {
    if (row.name.empty()) refuse(row.where, "a tensor has no name");
    if (!names.insert(row.name).second) refuse(row.where, row.name + " is there twice");
    const double elems = row.num_elems.value_or(-1);
    const bool is_count = elems >= 0 && elems <= kMostElems && elems == std::floor(elems);
    if (!is_count) {
      refuse(row.where, fmt::format("{} has no number of elements (numel)", row.name));
    }
    time_us = ready_us(row, time_us, tensors.empty());
    tensors.push_back({row.name, static_cast<std::int64_t>(elems), time_us * kMicroseconds});
  }
  return tensors;
}

}  // namespace cinch::driver
