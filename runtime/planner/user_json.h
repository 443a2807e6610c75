// JSON that people write: what says something twice is refused, where a reader of JSON would take
// the last.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace cinch::rt {

/// Throws nlohmann::json::exception (no JSON) or std::invalid_argument, which names a key that an
/// object has twice.
nlohmann::json parse_user_json(std::string_view text);

}  // namespace cinch::rt
