// Reads the cache's settings from the environment.
#include <fmt/format.h>

#include <string_view>

#include "runtime/cache/image_cache.h"
#include "runtime/core/environment.h"
#include "runtime/core/numbers/parse_number.h"

namespace cinch::rt {
namespace {

bool is_on(const char* name) {
  const auto word = environment_variable(name);
  return word != "off" && word != "0";
}

std::filesystem::path default_folder() {
  const auto given = environment_variable("CINCH_CACHE_DIR");
  if (!given.empty()) return given;
  const auto folder = user_folder("XDG_CACHE_HOME", ".cache");
  return folder.empty() ? folder : folder / "cinch";
}

}  // namespace

CacheSettings cache_settings_from_environment() {
  CacheSettings settings;
  settings.is_on = is_on("CINCH_CACHE");
  settings.improves = is_on("CINCH_BACKGROUND");
  settings.folder = default_folder();
  auto shared = environment_variable("CINCH_CACHE_SHARED");
  while (!shared.empty()) {
    const std::size_t colon = std::min(shared.find(':'), shared.size());
    if (colon > 0) settings.shared.emplace_back(shared.substr(0, colon));
    shared.remove_prefix(std::min(colon + 1, shared.size()));
  }
  const auto limit = environment_variable("CINCH_CACHE_MAX_BYTES");
  const ParsedCount bytes = parse_count(limit, "B");
  if (bytes.state == ParsedCount::State::Whole && !bytes.is_negative) {
    settings.max_bytes = bytes.magnitude;
  } else if (!limit.empty()) {
    settings.problem =
        fmt::format("CINCH_CACHE_MAX_BYTES is '{}', which is not a number of bytes", limit);
  }
  return settings;
}

}  // namespace cinch::rt
