// `cinch explain --html`: makes a program's page from the JSON report alone.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace cinch::driver {

/// Returns a self-contained HTML file.
std::string explain_page(const nlohmann::json& report);

}  // namespace cinch::driver
