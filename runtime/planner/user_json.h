// Parses JSON that people write. It rejects an object with the same key twice, for which other
// readers take the last value.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace cinch::rt {

/// Throws nlohmann::json::exception (not JSON) or std::invalid_argument, which names the key that
/// an object has twice.
nlohmann::json parse_user_json(std::string_view text);

}  // namespace cinch::rt
