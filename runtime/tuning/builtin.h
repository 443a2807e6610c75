// The text of tuning.json, which is built into the library.
#pragma once
#include <string_view>

namespace cinch::rt {

extern const std::string_view kBuiltinTuning;

}  // namespace cinch::rt
