// Bodies of json.h.
#include "compiler/lsp/protocol/json.h"

#include <algorithm>

namespace cinch::lsp {

namespace {

std::uint32_t count_of(const Json& json) {
  const auto value = json.get<std::int64_t>();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, UINT32_MAX));
}

}  // namespace

Json to_json(Position position) {
  return {{"line", position.line}, {"character", position.character}};
}

Position position_of(const Json& json) {
  return {count_of(json.at("line")), count_of(json.at("character"))};
}

Json range_json(const TextPositions& positions, dsl::Span span) {
  return {{"start", to_json(positions.position(span.begin))},
          {"end", to_json(positions.position(span.end))}};
}

Json markdown(const std::string& text) {
  return {{"kind", "markdown"}, {"value", text}};
}

}  // namespace cinch::lsp
