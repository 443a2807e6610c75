// Bodies of json.h.
#include "runtime/core/json.h"

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

namespace {

using nlohmann::json;

// Deeper than any of our files; deeper trees are destroyed by the library.
constexpr int kMaxDepth = 100;

// Leaves no child within a child: such values are destroyed without allocating.
void take_apart(json& value, int depth) noexcept {
  if (depth > kMaxDepth) return;
  if (auto* array = value.get_ptr<json::array_t*>()) {
    for (json& child : *array) take_apart(child, depth + 1);
    array->clear();
  }
  if (auto* object = value.get_ptr<json::object_t*>()) {
    for (auto& [name, child] : *object) take_apart(child, depth + 1);
    object->clear();
  }
}

}  // namespace

JsonTree::~JsonTree() {
  take_apart(root_, 0);
}

bool JsonTree::parse(std::string_view text) {
  // Parses into a member, so that a half-built tree is taken apart, too, if memory runs out.
  nlohmann::detail::json_sax_dom_parser<json> builder(root_, false);
  return json::sax_parse(text.begin(), text.end(), &builder);
}

}  // namespace cinch::rt
