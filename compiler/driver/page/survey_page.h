// `cinch report --html`: makes the page of a folder of gradients from the JSON report alone.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace cinch::driver {

/// Returns a self-contained HTML file. The report is that of survey_report.h.
std::string survey_page(const nlohmann::json& report);

}  // namespace cinch::driver
