#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "compiler/driver/report/explain.h"
#include "compiler/driver/report/text.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

constexpr std::size_t kHeadingWidth = 11;
std::string number_of_bytes(const json& bytes) {
  return grouped(bytes.get<std::int64_t>());
}

class Explanation {
 public:
  Explanation(const json& report, std::size_t width, bool with_places)
      : report_(report), width_(width), with_places_(with_places) {}

  std::string whole() {
    add_head();
    if (report_.contains("collectives")) {
      add_protocol();
    } else {
      add_payload();
    }
    add_named_numbers("sizes", report_["sizes"]);
    add_named_numbers("parameters", report_["parameters"]);
    for (const char* name : {"encode", "decode", "decode_add", "finish", "sync"}) {
      if (report_.contains(name)) add_entry(name, report_[name]);
    }
    text_ += "\n";
    add_memory();
    if (report_.contains("aggregation")) {
      add("adds up", report_["aggregation"].get<std::string>());
      if (!report_.value("finish_is_linear", true))
        add("plans", "those that decode every rank's payload: finish is not linear");
    }
    add("sums", "carries sums by " + report_["carries_sums"].get<std::string>());
    for (const json& check : report_["checks"]) add("checked", check.get<std::string>());
    if (report_["checks"].empty()) add("checked", "nothing while running: all is proved");
    if (with_places_) {
      add("steps", fmt::format("{} rewrites and fusion steps (--pass-limit)",
                               report_["fusion"]["steps"].get<std::int64_t>()));
    }
    return std::move(text_);
  }

 private:
  // Adds the heading, followed by the text on as many lines as it needs.
  void add(const std::string& heading, const std::string& text) {
    text_ += padded(heading, kHeadingWidth) + wrapped(text, kHeadingWidth, width_) + "\n";
  }

  void add_head() {
    const auto name = report_["compressor"].get<std::string>();
    const auto summary = report_["summary"].get<std::string>();
    text_ += wrapped(name + (summary.empty() ? "" : ": " + summary), 0, width_) + "\n";
    const auto elements = report_["elements"].get<std::int64_t>();
    std::string shape;
    if (report_.contains("columns")) {
      const auto columns = report_["columns"].get<std::int64_t>();
      shape = fmt::format(", a matrix of {} x {}", elements / columns, columns);
    }
    const char* other = elements == ExplainOptions{}.elements ? " (or --elements N)" : "";
    text_ += wrapped(fmt::format("for {}{}{}: {} bytes", counted(elements, "element"), other, shape,
                                 grouped(4 * elements)),
                     0, width_) +
             "\n\n";
  }

  // "payload    8,544 bytes, ratio 491", or a range from the shortest to the longest.
  void add_payload() {
    const json& payload = report_["payload"];
    const std::string most = number_of_bytes(payload["bound_bytes"]);
    std::string bytes = most + " bytes", ratio;
    if (payload["least_bytes"] != payload["bound_bytes"])
      bytes = number_of_bytes(payload["least_bytes"]) + " to " + bytes;
    if (!payload["ratio"].is_null()) {
      ratio = ", ratio " + three_digits(payload["ratio"].get<double>());
      if (payload["least_bytes"] != payload["bound_bytes"])
        ratio += " to " + three_digits(payload["ratio_most"].get<double>());
    }
    add("payload", bytes + ratio);
    add_fields(payload);
  }

  void add_fields(const json& payload) {
    std::size_t name_width = 6;
    for (const json& field : payload["fields"])
      name_width = std::max(name_width, num_characters(field["name"].get<std::string>()));
    const auto add_row = [&](const std::string& name, const json& bytes, const std::string& type) {
      const std::string row =
          fmt::format("  {}  {:>13}  ", padded(name, name_width), number_of_bytes(bytes));
      text_ += row + wrapped(type, num_characters(row), width_);
      text_.erase(text_.find_last_not_of(' ') + 1);
      text_ += "\n";
    };
    add_row("header", payload["header_bytes"], "");
    for (const json& field : payload["fields"])
      add_row(field["name"].get<std::string>(), field["bytes"], field_in_words(field));
    std::vector<std::string> counts;
    for (const json& count : payload["counts"]) {
      counts.push_back(fmt::format("{} <= {}", count["name"].get<std::string>(),
                                   number_of_bytes(count["most"])));
    }
    if (!counts.empty()) add("counts", fmt::format("{}", fmt::join(counts, ", ")));
  }

  void add_named_numbers(const std::string& heading, const json& list) {
    std::vector<std::string> numbers;
    for (const json& each : list) {
      numbers.push_back(each["name"].get<std::string>() + " = " + value_in_words(each));
    }
    if (!numbers.empty()) add(heading, fmt::format("{}", fmt::join(numbers, ", ")));
  }

  void add_protocol() {
    const json& collectives = report_["collectives"];
    add("protocol", counted(static_cast<std::int64_t>(collectives.size()), "collective"));
    for (const json& each : collectives) {
      std::string bytes;
      if (each.contains("packed")) {
        bytes = "packed:";
        for (const json& world : each["packed"]) {
          bytes += fmt::format("{} {} ranks {} bytes", bytes.ends_with(':') ? "" : ",",
                               world["ranks"].get<int>(), number_of_bytes(world["bytes"]));
        }
      } else {
        bytes = fmt::format("{}{} bytes", each.contains("is_most") ? "at most " : "",
                            number_of_bytes(each["bytes"]));
      }
      const std::string name = "  " + padded(each["name"].get<std::string>(), 20) + " ";
      const std::string what = each["type"].get<std::string>() + ", " + bytes;
      text_ += name;
      text_ += wrapped(what, num_characters(name), width_) + "\n";
    }
  }

  static std::string moved(double read, double written) {
    return fmt::format("{:.3f} B read, {:.3f} B written per element", read, written);
  }
  static std::string in_sweeps(const json& sweeps, const std::string& text) {
    return counted(sweeps.get<std::int64_t>(), "sweep") + "; " + text;
  }

  // Bytes that move compared with those that must move; if branches decide, the best and the worst
  // case.
  void add_cases(const std::string& call, const json& entry) {
    const auto per_element = [&](const std::string& key) { return entry[key].get<double>(); };
    const auto add_case = [&](const char* name, const std::string& text) {
      add(std::string("  ") + name, text);
    };
    const std::string most =
        moved(per_element("read_per_element"), per_element("written_per_element"));
    const std::string least =
        moved(per_element("read_per_element_least"), per_element("written_per_element_least"));
    if (least == most && entry["sweeps_least"] == entry["sweeps_most"]) {
      add_case("moves", most);
    } else {
      add_case("best", in_sweeps(entry["sweeps_least"], least));
      add_case("worst", in_sweeps(entry["sweeps_most"], most));
    }
    std::string floor = in_sweeps(
        entry["floor_sweeps"],
        moved(per_element("floor_read_per_element"), per_element("floor_written_per_element")));
    const double words = per_element("random_words_per_element");
    if (words > 0) floor += fmt::format(", {:.3f} random words", words);
    const std::string why = why_floor_is_above(call, entry);
    add_case("floor", why.empty() ? floor : floor + "; above what moves, because " + why);
  }

  void add_entry(const std::string& name, const json& entry) {
    const std::string sweeps =
        entry["sweeps_least"] == entry["sweeps_most"]
            ? counted(entry["sweeps_least"].get<std::int64_t>(), "sweep")
            : fmt::format("{} to {}", entry["sweeps_least"].dump(),
                          counted(entry["sweeps_most"].get<std::int64_t>(), "sweep"));
    text_ += "\n";
    add(name, fmt::format("{}, {} over memory",
                          counted(entry["kernels"].get<std::int64_t>(), "kernel"), sweeps));
    add_cases(name, entry);
    if (name == "decode_add") return;  // decode's kernels; the output is read, too
    add_kernels(entry);
    const auto apart = apart_in_words(report_["fusion"], entry["kernel_list"],
                                      with_places_ ? Places::Path : Places::None);
    if (!apart.empty()) text_ += "  not one sweep, because\n";
    for (const auto& [who, why] : apart)
      text_ += "    " + wrapped(fmt::format("{}: {}", who, why), 4, width_) + "\n";
  }

  static std::int64_t most_bytes(const json& line) {
    return line["read_most"].get<std::int64_t>() + line["written_most"].get<std::int64_t>();
  }

  void add_kernels(const json& entry) {
    constexpr std::size_t kNumber = 4, kBytes = 9, kBlanks = 2 + 4 * 2;
    const std::size_t names = (width_ - kNumber - kBytes - kBlanks) / 10 * 3;
    const std::size_t does = width_ - kNumber - kBytes - kBlanks - 2 * names;
    TextTable table({{"", "#", false, kNumber},
                     {"", "reads", true, names},
                     {"", "does", true, does},
                     {"", "writes", true, names},
                     {"", "bytes", false, kBytes}},
                    2);
    std::int64_t finishes = 0, finish_bytes = 0;
    bool has_branch = false, has_loop = false;
    const auto add_row = [&](const json& line, const std::string& number, const std::string& does) {
      has_branch |= line["in_branch"].get<bool>();
      has_loop |= line["in_loop"].get<bool>();
      // "2?" is in a branch, "3*" in a loop.
      const char* branch_mark = line["in_branch"].get<bool>() ? "?" : "";
      const char* loop_mark = line["in_loop"].get<bool>() ? "*" : "";
      table.add({number + branch_mark + loop_mark, stream_names(line["reads"]), does,
                 stream_names(line["writes"]), size_text(static_cast<double>(most_bytes(line)))});
    };
    for (const json& kernel : entry["kernel_list"]) {
      if (kernel["number"].is_null()) {
        ++finishes;
        finish_bytes += most_bytes(kernel);
      } else {
        add_row(kernel, kernel["number"].dump(), work_in_words(kernel["does"]));
      }
    }
    for (const json& move : joined_moves(entry["move_list"]))
      add_row(move, "", move["does"].get<std::string>());
    text_ += table.text(width_);
    if (has_branch) text_ += "  ?: only where the data asks for it\n";
    if (has_loop) text_ += "  *: in a loop\n";
    add_work(entry);
    if (finishes > 0) {
      text_ += fmt::format("  and {} that {} what sweeps left: {}\n",
                           counted(finishes, "small kernel"), finishes == 1 ? "joins" : "join",
                           size_text(static_cast<double>(finish_bytes)));
    }
  }

  // Sweeps that compute several times as long as they move bytes.
  void add_work(const json& entry) {
    constexpr double kFewest = 4;
    for (const json& kernel : entry["kernel_list"]) {
      const double sweeps = kernel["work_sweeps"].get<double>();
      if (kernel["number"].is_null() || sweeps < kFewest) continue;
      const std::string line =
          fmt::format("{} computes as long as about {:.0f} plain sweeps on a CPU: {}",
                      kernel["number"].dump(), sweeps, kernel["work_most"].get<std::string>());
      text_ += "  " + wrapped(line, 4, width_) + "\n";
    }
  }

  void add_memory() {
    for (const json& input : report_["inputs"]) {
      add("input", fmt::format("{}: {}, with each call", input["name"].get<std::string>(),
                               input["type"].get<std::string>()));
    }
    for (const json& state : report_["states"]) {
      add("state",
          fmt::format("{}: {}, {} bytes, {}", state["name"].get<std::string>(),
                      state["type"].get<std::string>(), number_of_bytes(state["bytes"]),
                      state["in_place"].get<bool>() ? "updated in place" : "and a second buffer"));
    }
    add("workspace", number_of_bytes(report_["workspace_bytes"]) + " bytes");
    std::string copies;
    for (const json& copy : report_["narrow_copies"]) {
      copies += fmt::format("{}{} {} bytes{}", copies.empty() ? "" : ", ",
                            copy["call"].get<std::string>(), number_of_bytes(copy["bytes"]),
                            copy["is_for_each_thread"].get<bool>() ? " a thread" : "");
    }
    add("f16, bf16", copies + " more");
  }

  const json& report_;
  std::size_t width_;
  bool with_places_;
  std::string text_;
};

// A smaller stream of workspace is a scalar: a partial result or count that a sweep writes or
// reads.
constexpr std::int64_t kSmallBytes = 64;

// "needs `low` first", "they go over 1000 and 4 x 1000 elements".
std::string reason_of(const json& pair, Places places) {
  const json& sizes = pair["sizes"];
  std::string why = pair["why"].get<std::string>();
  if (sizes.size() == 2) {
    why = fmt::format("they go over {} and {} elements", sizes[0].get<std::string>(),
                      sizes[1].get<std::string>());
  }
  if (places == Places::None || pair["at"].is_null()) return why;
  std::string at = pair["at"].get<std::string>();
  if (places == Places::FileName) at.erase(0, at.rfind('/') + 1);  // npos + 1 is 0
  return why + " (" + at + ")";
}

}  // namespace

std::string explanation_text(const json& report, std::size_t width, bool with_places) {
  return Explanation(report, width, with_places).whole();
}

std::string work_in_words(const json& does) {
  std::vector<std::pair<std::string, int>> work;
  for (const json& each : does) {
    const auto text = each.get<std::string>();
    const auto known = std::ranges::find(work, text, &std::pair<std::string, int>::first);
    if (known == work.end()) {
      work.emplace_back(text, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [what, times] : work) {
    text += (text.empty() ? "" : ", ") + what;
    if (times > 1) text += fmt::format(" ×{}", times);
  }
  return text;
}

std::string stream_names(const json& streams) {
  std::vector<std::string> names;
  bool has_small = false;
  for (const json& stream : streams) {
    const auto name = stream["name"].get<std::string>();
    if (stream["most"].get<std::int64_t>() <= kSmallBytes && stream["kind"] == "workspace") {
      has_small = true;
    } else if (std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  if (has_small && names.empty()) names.emplace_back("scalars");
  return fmt::format("{}", fmt::join(names, ", "));
}

json joined_moves(const json& moves) {
  json joined = json::array();
  for (const json& move : moves) {
    const auto is_alike = [&](const json& other) {
      return std::ranges::all_of(std::array{"does", "in_branch", "in_loop"},
                                 [&](const char* key) { return move[key] == other[key]; });
    };
    const auto known = std::ranges::find_if(joined, is_alike);
    if (known == joined.end()) {
      joined.push_back(move);
      continue;
    }
    for (const char* key : {"reads", "writes"})
      (*known)[key].insert((*known)[key].end(), move[key].begin(), move[key].end());
    for (const char* key : {"read_most", "written_most"})
      (*known)[key] = (*known)[key].get<std::int64_t>() + move[key].get<std::int64_t>();
  }
  return joined;
}

std::string field_in_words(const json& field) {
  std::string text = field["type"].get<std::string>();
  if (!field["packs"].is_null()) text = field["packs"].get<std::string>() + ", in " + text;
  if (!field["by"].is_null()) text += ", ranks add it up by " + field["by"].get<std::string>();
  return text;
}

std::string value_in_words(const json& named) {
  if (const json word = named.value("word", json()); !word.is_null()) return word;
  const json& number = named["value"];
  if (number.is_number_integer()) return grouped(number.get<std::int64_t>());
  return number.is_null() ? "-" : fmt::format("{}", number.get<double>());
}

std::string why_floor_is_above(const std::string& call, const json& entry) {
  constexpr double kPrinted = 0.001;  // what three digits show
  const auto bytes = [&](const char* read, const char* written) {
    return entry[read].get<double>() + entry[written].get<double>();
  };
  if (bytes("floor_read_per_element", "floor_written_per_element") <
      bytes("read_per_element", "written_per_element") + kPrinted)
    return {};
  const bool scatters = std::ranges::any_of(entry["kernel_list"], [](const json& kernel) {
    return std::ranges::any_of(kernel["does"], [](const json& done) {
      return done.get<std::string>().starts_with("scatter");
    });
  });
  if (!scatters) return "the floor updates states in place";
  // The indices that an encoder scatters to are those that it selected.
  return call.starts_with("decode")
             ? "the floor counts a cache line for each element that is scattered"
             : "the floor counts an exact selection as two sweeps";
}

std::vector<Apart> apart_in_words(const json& fusion, const json& kernels, Places places) {
  std::map<std::string, int> numbers;
  for (const json& kernel : kernels) {
    if (!kernel["number"].is_null()) numbers[kernel["name"]] = kernel["number"];
  }
  // Keyed by the second of both, then the first
  std::map<std::pair<int, int>, std::string> reasons;
  for (const json& pair : fusion["apart"]) {
    const auto first = numbers.find(pair["first"].get<std::string>());
    const auto second = numbers.find(pair["second"].get<std::string>());
    if (first == numbers.end() || second == numbers.end()) continue;
    reasons[{second->second, first->second}] = reason_of(pair, places);
  }
  std::vector<Apart> told;
  for (const auto& [both, why] : reasons) {
    const std::string who = fmt::format("{}+{}", both.second, both.first);
    const auto known = std::ranges::find(told, why, &Apart::why);
    if (known == told.end()) {
      told.push_back({who, why});
    } else {
      known->who += ", " + who;
    }
  }
  return told;
}

}  // namespace cinch::driver
