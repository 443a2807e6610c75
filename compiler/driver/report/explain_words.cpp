#include "compiler/driver/report/explain_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "compiler/driver/report/text.h"

namespace cinch::driver {

namespace {

using nlohmann::json;

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
