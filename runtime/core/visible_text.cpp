// Texts from outside for people, the nearest known name, and lines of the log.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/core/log.h"

namespace cinch::rt {
namespace {

using Byte = unsigned char;

// The bytes of the UTF-8 character that begins at `at`; 0 if none does.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const Byte first = static_cast<Byte>(text[at]);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xc2 ? 0
                           : first < 0xe0 ? 2
                           : first < 0xf0 ? 3
                           : first < 0xf5 ? 4
                                          : 0;
  if (at + size > text.size()) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    const bool is_continuation = (static_cast<Byte>(text[at + i]) & 0xc0u) == 0x80u;
    if (!is_continuation) return 0;
  }
  return size;
}

std::uint32_t code_point(std::string_view character) {
  const std::uint32_t first = static_cast<Byte>(character[0]);
  std::uint32_t point = character.size() == 1 ? first : first & (0x7fu >> character.size());
  for (const char byte : character.substr(1)) {
    point = point << 6 | (static_cast<Byte>(byte) & 0x3fu);
  }
  return point;
}

// Marks of writing direction: what follows would be shown in another order than it has.
bool is_direction(std::uint32_t point) {
  return point == 0x61c || point == 0x200e || point == 0x200f ||
         (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::string visible_text(std::string_view text) {
  std::string visible;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_bytes(text, at);
    const std::string_view character = text.substr(at, std::max<std::size_t>(size, 1));
    const std::uint32_t point = size == 0 ? 0 : code_point(character);
    const bool is_control =
        point < 0x20 ? point != '\n' && point != '\t' : point >= 0x7f && point < 0xa0;
    if (size == 0) {
      visible += fmt::format("\\x{:02x}", static_cast<Byte>(character[0]));
    } else if (is_control || is_direction(point)) {
      visible += point < 0x80 ? fmt::format("\\x{:02x}", point) : fmt::format("\\u{:04x}", point);
    } else {
      visible += character;
    }
    at += character.size();
  }
  return visible;
}

}  // namespace cinch::rt

namespace cinch {
// Spelling suggestions.

namespace {

// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours cost 1
// each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
      cost[i][j] = std::min({replace, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view word,
                              const std::vector<std::string_view>& candidates) {
  // Longer names are not slips of the finger, and the distance takes quadratic time.
  constexpr std::size_t kMaxLength = 64;
  if (word.empty() || word.size() > kMaxLength) return {};
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    if (candidate.size() > kMaxLength || candidate == word) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best && distance < candidate.size()) {
      best = distance;
      found = candidate;
    }
  }
  return found;
}

}  // namespace cinch

namespace cinch::rt {
namespace {

using TakesLines = std::function<void(const std::string&)>;

struct Log {
  std::mutex mutex;
  std::shared_ptr<const TakesLines> takes_lines;
};

// It is never destroyed: threads may outlive static objects.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

void set_log(std::function<void(const std::string& line)> takes_lines) {
  auto next = takes_lines ? std::make_shared<const TakesLines>(std::move(takes_lines)) : nullptr;
  const std::lock_guard lock(the_log().mutex);
  the_log().takes_lines.swap(next);
}

void tell_log(const std::string& line) {
  std::shared_ptr<const TakesLines> takes_lines;
  {
    const std::lock_guard lock(the_log().mutex);
    takes_lines = the_log().takes_lines;
  }
  if (takes_lines != nullptr) (*takes_lines)(line);
}

}  // namespace cinch::rt
