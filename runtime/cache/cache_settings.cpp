// Reads the cache's settings from the environment.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "runtime/cache/image_cache.h"
#include "runtime/core/numbers/parse_number.h"

namespace cinch::rt {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

bool is_on(const char* name) {
  const auto word = variable(name);
  return word != "off" && word != "0";
}

std::filesystem::path default_folder() {
  if (const auto given = variable("CINCH_CACHE_DIR"); !given.empty()) return given;
  if (const auto xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) {
    return std::filesystem::path(xdg) / "cinch";
  }
  if (const auto home = variable("HOME"); !home.empty()) {
    return std::filesystem::path(home) / ".cache" / "cinch";
  }
  return {};
}

}  // namespace

CacheSettings cache_settings_from_environment() {
  CacheSettings settings;
  settings.is_on = is_on("CINCH_CACHE");
  settings.improves = is_on("CINCH_BACKGROUND");
  settings.folder = default_folder();
  auto shared = variable("CINCH_CACHE_SHARED");
  while (!shared.empty()) {
    const std::size_t colon = std::min(shared.find(':'), shared.size());
    if (colon > 0) settings.shared.emplace_back(shared.substr(0, colon));
    shared.remove_prefix(std::min(colon + 1, shared.size()));
  }
  const auto limit = variable("CINCH_CACHE_MAX_BYTES");
  const ParsedCount bytes = parse_count(limit, "B");
  if (bytes.state == ParsedCount::State::Whole && !bytes.is_negative) {
    settings.max_bytes = bytes.magnitude;
  } else if (!limit.empty()) {
    settings.problem =
        fmt::format("CINCH_CACHE_MAX_BYTES is '{}', which is no number of bytes", limit);
  }
  return settings;
}

}  // namespace cinch::rt
