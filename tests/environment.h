// Settings of tests from the environment.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace cinch {

/// Returns `otherwise` if the variable is not set, or empty.
inline std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Is the full matrix requested (CINCH_LONG set and not 0)? Otherwise tests run a covering set that
/// CI has time for.
inline bool is_long_run() {
  const char* value = std::getenv("CINCH_LONG");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

/// Is a sample of the everyday matrix enough (CINCH_SAMPLE set and not 0)? For builds in which
/// everything takes several times as long.
inline bool is_sample_run() {
  const char* value = std::getenv("CINCH_SAMPLE");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace cinch
