#include "runtime/planner/ready_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "runtime/core/json.h"
#include "runtime/core/log.h"
#include "runtime/core/numbers/parse_number.h"

namespace cinch::rt {
namespace {

using nlohmann::json;
constexpr double kMicroseconds = 1e-6, kMostMicroseconds = 3600e6;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// The most elements of a plan's tensor.
constexpr double kMostElems = 4294967295.0;

// One tensor of the file.
struct ProfileRow {
  std::string where, name;
  std::optional<double> num_elems, gap_us, ready_us, spread_us;
  std::optional<std::vector<double>> shape = {};
};

struct ProfileTable {
  std::vector<ProfileRow> rows;
  std::optional<double> forward_us, optimizer_us;
};

class Refused : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void refuse(const std::string& where, const std::string& why) {
  throw Refused(where + ": " + why);
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

double number_in(const std::string& where, const std::string& what, const std::string& text) {
  const auto known = parse_number(text);
  if (!known) refuse(where, fmt::format("{} is '{}', which is not a number", what, text));
  return *known;
}

// "1000x512"
std::vector<double> shape_in(const std::string& where, const std::string& text) {
  std::vector<double> shape;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    shape.push_back(number_in(where, "shape", text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return shape;
}

class CsvReader {
 public:
  CsvReader(std::string_view name, std::string_view text) : name_(name), text_(text) {}

  ProfileTable read() {
    std::size_t line_number = 0;
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      read_line(fmt::format("{}:{}", name_, ++line_number), text_.substr(begin, end - begin));
      begin = end + 1;
    }
    return std::move(table_);
  }

 private:
  void read_line(const std::string& where, std::string_view line) {
    if (line.starts_with('#')) return read_fact(where, line.substr(1));
    if (line.find('"') != std::string_view::npos) refuse(where, "quoted cells are not read");
    std::vector<std::string> cells = cells_of(line);
    if (cells.size() == 1 && cells[0].empty()) return;
    if (columns_.empty()) return read_names(where, cells);
    const auto cell = [&](const char* column) -> std::optional<std::string> {
      const auto found = columns_.find(column);
      if (found == columns_.end()) return std::nullopt;
      if (found->second >= cells.size()) refuse(where, fmt::format("there is no {}", column));
      return cells[found->second];
    };
    const auto number = [&](const char* column) -> std::optional<double> {
      const auto text = cell(column);
      return text ? std::optional(number_in(where, column, *text)) : std::nullopt;
    };
    ProfileRow& row = table_.rows.emplace_back(ProfileRow{where, cell("name").value_or(""),
                                                          number("numel"), number("ready_gap_us"),
                                                          number("ready_us"), number("spread_us")});
    if (const auto shape = cell("shape")) row.shape = shape_in(where, *shape);
  }

  void read_names(const std::string& where, const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (columns_.emplace(cells[i], i).second) continue;
      refuse(where, fmt::format("there are two columns {}", cells[i]));
    }
  }

  void read_fact(const std::string& where, std::string_view line) {
    const std::string text = cells_of(line)[0];
    const std::size_t space = std::min(text.find(' '), text.size());
    const std::string fact = text.substr(0, space);
    auto* const to = fact == "forward_us"     ? &table_.forward_us
                     : fact == "optimizer_us" ? &table_.optimizer_us
                                              : nullptr;
    if (to == nullptr) return;
    const std::size_t number = std::min(text.find_first_not_of(' ', space), text.size());
    *to = number_in(where, fact, text.substr(number));
  }

  std::string_view name_, text_;
  std::map<std::string, std::size_t> columns_;
  ProfileTable table_;
};

std::optional<double> number_of(const std::string& where, const json& entry, const char* key) {
  if (!entry.contains(key)) return std::nullopt;
  if (!entry[key].is_number()) refuse(where, fmt::format("{} is not a number", key));
  return entry[key].get<double>();
}

ProfileRow row_of_json(const std::string& where, const json& entry) {
  if (!entry.is_object()) refuse(where, "not an object");
  const auto number = [&](const char* key) { return number_of(where, entry, key); };
  const bool is_named = entry.contains("name") && entry["name"].is_string();
  ProfileRow row{where,
                 is_named ? entry["name"].get<std::string>() : "",
                 number("numel"),
                 number("ready_gap_us"),
                 number("ready_us"),
                 number("spread_us")};
  if (!entry.contains("shape")) return row;
  const json& shape = entry["shape"];
  const bool are_numbers =
      shape.is_array() && std::ranges::all_of(shape, [](const json& n) { return n.is_number(); });
  if (!are_numbers) refuse(where, "shape is not a list of numbers");
  row.shape = shape.get<std::vector<double>>();
  return row;
}

ProfileTable table_of_json(std::string_view name, std::string_view text) {
  const std::string file(name);
  json root;
  try {
    root = parse_user_json(text);
  } catch (const std::invalid_argument& error) {
    refuse(file, error.what());
  }
  ProfileTable table;
  const bool has_facts = root.is_object() && root.contains("tensors");
  if (has_facts) {
    table.forward_us = number_of(file, root, "forward_us");
    table.optimizer_us = number_of(file, root, "optimizer_us");
  }
  const json& list = has_facts ? root["tensors"] : root;
  if (!list.is_array()) refuse(file, "not a JSON array of tensors");
  for (std::size_t i = 0; i < list.size(); ++i) {
    table.rows.push_back(row_of_json(fmt::format("{}: entry {}", name, i), list[i]));
  }
  return table;
}

// Of at most an hour; NaN is none.
bool is_time(double microseconds) {
  return microseconds >= 0 && microseconds <= kMostMicroseconds;
}

// When the tensor is ready, given that the one before it was ready at `before`.
double ready_us(const ProfileRow& row, double before, bool is_first) {
  if (!row.gap_us && !row.ready_us) refuse(row.where, "neither ready_gap_us nor ready_us");
  if (!std::isfinite(row.gap_us.value_or(0)) || !std::isfinite(row.ready_us.value_or(0))) {
    refuse(row.where, fmt::format("{} has a time that is not a finite number", row.name));
  }
  if (!is_time(row.spread_us.value_or(0))) {
    refuse(row.where, fmt::format("{} has a spread that is no time", row.name));
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

bool is_count(double number) {
  return number >= 0 && number <= kMostElems && number == std::floor(number);
}

// Of `numel`, or of the shape.
std::int64_t num_elems_of(const ProfileRow& row) {
  if (row.shape) {
    double product = 1;
    for (const double size : *row.shape) {
      if (!is_count(size)) refuse(row.where, fmt::format("{} has no such shape", row.name));
      product *= size;
    }
    const bool is_other = row.num_elems && *row.num_elems != product;
    if (is_other) {
      refuse(row.where, fmt::format("{} has {} elements, and a shape of {}", row.name,
                                    *row.num_elems, product));
    }
    if (!is_count(product)) refuse(row.where, row.name + " has too many elements");
    return static_cast<std::int64_t>(product);
  }
  const double elems = row.num_elems.value_or(-1);
  if (!is_count(elems)) {
    refuse(row.where, fmt::format("{} has no number of elements (numel)", row.name));
  }
  return static_cast<std::int64_t>(elems);
}

std::optional<double> seconds_of(std::string_view name, const char* what,
                                 const std::optional<double>& microseconds) {
  if (!microseconds) return std::nullopt;
  if (!is_time(*microseconds)) {
    refuse(std::string(name), fmt::format("{} is no time of at most an hour", what));
  }
  return *microseconds * kMicroseconds;
}

ReadyProfile profile_of(std::string_view name, const ProfileTable& table) {
  if (table.rows.empty()) refuse(std::string(name), "a profile without tensors");
  ReadyProfile profile;
  profile.forward_seconds = seconds_of(name, "forward_us", table.forward_us);
  profile.optimizer_seconds = seconds_of(name, "optimizer_us", table.optimizer_us);
  std::set<std::string> names;
  double time_us = 0;
  for (const ProfileRow& row : table.rows) {
    if (row.name.empty()) refuse(row.where, "a tensor has no name");
    const auto is_control = [](unsigned char c) { return c < 0x20; };
    if (std::ranges::any_of(row.name, is_control)) {
      refuse(row.where, "the name " + visible_text(row.name) + " has a control character");
    }
    if (!names.insert(row.name).second) refuse(row.where, row.name + " is there twice");
    const std::int64_t elems = num_elems_of(row);
    time_us = ready_us(row, time_us, profile.tensors.empty());
    ReadyTensor& tensor = profile.tensors.emplace_back(ReadyTensor{
        row.name, elems, {}, time_us * kMicroseconds, row.spread_us.value_or(0) * kMicroseconds});
    for (const double size : row.shape.value_or(std::vector<double>())) {
      tensor.shape.push_back(static_cast<std::int64_t>(size));
    }
  }
  return profile;
}

}  // namespace

Result<ReadyProfile> parse_profile(std::string_view name, std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const bool is_json = first < text.size() && (text[first] == '[' || text[first] == '{');
  try {
    return profile_of(name, is_json ? table_of_json(name, text) : CsvReader(name, text).read());
  } catch (const Refused& refused) {
    return fail(ErrorKind::CorruptFile, refused.what());
  }
}

}  // namespace cinch::rt
