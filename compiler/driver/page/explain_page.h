// `cinch explain --html`: a program's page, from the JSON report alone.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace cinch::driver {

/// One HTML file that needs nothing else.
std::string explain_page(const nlohmann::json& report);

}  // namespace cinch::driver
