// Values of a program for people: what `cinch eval` and `cinch run --show` print.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compiler/interp/interp.h"

namespace cinch::driver {

/// "f32", "[f32; 5000]", "[f32; 50, 100]".
std::string type_text(const interp::Array& array);

/// As a program would write it: `0.5`, `[1.0, 2.0]`. Of long arrays the beginning, and "…".
std::string value_text(const interp::Array& array);

/// {"type", "shape", "elements"}: the first 1000 elements row by row. Those that are not finite are
/// strings: "nan", "inf", "-inf".
nlohmann::json value_json(const interp::Array& array);

}  // namespace cinch::driver
