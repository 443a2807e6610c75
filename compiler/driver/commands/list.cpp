// cinch list: lists the standard library with one line for each compressor, or some compressors in
// full.

#include <algorithm>
#include <limits>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "compiler/service/library_list.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

constexpr std::size_t kHeadingWidth = 12;

std::string bits_text(const json& item) {
  const json& bits = item["payload_bits_per_element"];
  return bits.is_null() ? "-" : fmt::format("{:.3f}", bits.get<double>());
}

// Sorted by family in the library's order, by name, or by bits with unknown ones last.
json sorted(json list, const std::string& by) {
  const auto bits = [](const json& item) {
    const json& known = item["payload_bits_per_element"];
    return known.is_null() ? std::numeric_limits<double>::max() : known.get<double>();
  };
  if (by == "family") return list;
  std::stable_sort(list.begin(), list.end(), [&](const json& a, const json& b) {
    return by == "name" ? a["name"] < b["name"] : bits(a) < bits(b);
  });
  return list;
}

// Pads names to one width, so that all families have the same columns. In a narrow terminal, what a
// program does is below its numbers.
void print_list(const json& list, bool has_families) {
  const std::size_t width = text_width();
  std::size_t longest = 0;
  for (const json& item : list)
    longest = std::max(longest, num_characters(item["name"].get<std::string>()));
  constexpr std::size_t kLeastSummary = 20, kIndentBelow = 4;
  const auto print_row = [&](const std::string& name, const std::string& bits,
                             const std::string& adds_up, const std::string& summary) {
    const std::string row = fmt::format("  {} {:>7}  {:<7} ", padded(name, longest), bits, adds_up);
    const std::size_t taken = num_characters(row);
    if (taken + kLeastSummary > width) {
      const std::size_t left = std::max(width, kIndentBelow + kLeastSummary) - kIndentBelow;
      print_text("{}\n{}{}\n", fit_to_width(row.substr(0, row.find_last_not_of(' ') + 1), width),
                 std::string(kIndentBelow, ' '), shortened(summary, left));
    } else {
      print_text("{}\n", row + shortened(summary, width - taken));
    }
  };
  print_row("", "bits", "adds up", "what it does");
  std::string family;
  for (const json& item : list) {
    if (has_families && item["family"] != family) {
      family = item["family"];
      print_text("std.{}\n", family);
    }
    const auto adds_up = item["aggregation"].get<std::string>();
    print_row(item["name"], bits_text(item), adds_up == "as the wrapped one" ? "-" : adds_up,
              item["summary"]);
  }
  print_text("\n{}\n", wrapped("bits: per element of a tensor of 4 MiB, at most. `cinch list NAME` "
                               "shows one: its paper, parameters, claims and an example.",
                               0, width));
}

// "const block: u32 = 32 in 1..=1024"
std::string parameter_text(const json& param) {
  std::string text =
      fmt::format("{}{}: {}", param["constant"].get<bool>() ? "const " : "",
                  param["name"].get<std::string>(), param["type"].get<std::string>());
  if (!param["default"].is_null()) text += " = " + param["default"].get<std::string>();
  if (!param["range"].is_null()) text += " in " + param["range"].get<std::string>();
  const auto doc = param["doc"].get<std::string>();
  return doc.empty() ? text : text + "  " + doc;
}

class Card {
 public:
  explicit Card(std::size_t width) : width_(width) {}

  void print(const json& item) const {
    const auto name = item["name"].get<std::string>();
    print_text("{} (std.{})\n", name, item["family"].get<std::string>());
    print_text("{}\n\n", wrapped(item["summary"], 0, width_));
    for (const char* heading : {"paper", "stores", "choices"})
      print_part(heading, item[heading].get<std::string>());
    const json& parameters = item["parameters"];
    for (std::size_t i = 0; i < parameters.size(); ++i)
      print_part(i == 0 ? "parameters" : "", parameter_text(parameters[i]));
    print_part("claims",
               fmt::format("{}", fmt::join(item["claims"].get<std::vector<std::string>>(), ", ")));
    print_part("payload",
               item["aggregation"] == "sync" ? "none: ranks talk to each other in its `sync`"
               : item["payload_bound"].is_null()
                   ? "that of what it wraps"
                   : fmt::format("at most {} bits per element of a tensor of 4 MiB; in bytes {}",
                                 bits_text(item), item["payload_bound"].get<std::string>()));
    print_part("adds up", item["aggregation"]);
    if (!item["carries_sums"].is_null())
      print_part("sums", "carries sums by " + item["carries_sums"].get<std::string>());
    print_part("source", item["file"]);
    // The example is printed unchanged, for pasting.
    print_text("\n{}\n\n", item["example"]["command"].get<std::string>());
    for (const json& line : item["example"]["python"]) print_text("{}\n", line.get<std::string>());
  }

 private:
  void print_part(const std::string& heading, const std::string& text) const {
    if (text.empty()) return;
    print_text("{}{}\n", padded(heading, kHeadingWidth), wrapped(text, kHeadingWidth, width_));
  }

  std::size_t width_;
};

// The command as given, with a mark below the unknown name.
std::string marked(const std::vector<std::string>& words, const std::string& name) {
  const auto wrong = std::find(words.begin() + 1, words.end(), name);
  const std::string before = fmt::format("  cinch {} ", fmt::join(words.begin() + 1, wrong, " "));
  return fmt::format("{}{}\n{}{}", before, fmt::join(wrong, words.end(), " "),
                     std::string(num_characters(before), ' '),
                     std::string(std::max<std::size_t>(num_characters(name), 1), '^'));
}

const json& find_compressor(const json& list, const std::string& name,
                            const std::vector<std::string>& words) {
  std::vector<std::string_view> names;
  for (const json& item : list) {
    const auto& known = item["name"].get_ref<const std::string&>();
    if (known == name) return item;
    names.push_back(known);
  }
  const std::string_view near = nearest_name(name, names);
  throw CommandError(ExitCode::AtFault, "the standard library has no compressor '{}'{}\n{}", name,
                     near.empty() ? "; `cinch list` shows all" : did_you_mean(near),
                     marked(words, name));
}

}  // namespace

ExitCode run_list(const ListOptions& options) {
  FrontEnd front_end;
  const json all = service::list_library(front_end);
  front_end.end_if_errors();
  json items = options.names.empty() ? sorted(all, options.sort) : json::array();
  for (const std::string& name : options.names)
    items.push_back(find_compressor(all, name, options.words));
  if (options.json) {
    print_result(items);
  } else if (options.names.empty()) {
    print_list(items, options.sort == "family");
  } else {
    const Card card(text_width());
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) print_text("\n\n");
      card.print(items[i]);
    }
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
