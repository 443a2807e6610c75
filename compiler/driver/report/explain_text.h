// `cinch explain` as text: first numbers for the given size, then what each sweep reads, does and
// writes, and why neighbouring sweeps are not fused.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace cinch::driver {

/// No line is longer than `width` (at least 60). `with_places`: also shows where in the text the
/// value is for which a sweep waits, and how many steps the compiler took.
std::string explanation_text(const nlohmann::json& report, std::size_t width, bool with_places);

}  // namespace cinch::driver
