// Bodies of user_json.h.
#include "runtime/planner/user_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace cinch::rt {

nlohmann::json parse_user_json(std::string_view text) {
  using json = nlohmann::json;
  std::vector<std::set<std::string>> keys;  // of the open objects
  const auto look = [&](int /*depth*/, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      throw std::invalid_argument(fmt::format("{} is there twice in one object", value.dump()));
    }
    return true;
  };
  return json::parse(text, look);
}

}  // namespace cinch::rt
