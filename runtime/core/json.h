// JSON from untrusted files and from people.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

/// A whole number that fits T, without truncation or rounding. Throws std::invalid_argument.
template <typename T>
T to_whole_number(const nlohmann::json& value, const char* what) {
  bool fits = false;
  if (value.is_number_unsigned()) {
    fits = value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  } else if (std::is_signed_v<T> && value.is_number_integer()) {
    fits = value.get<std::int64_t>() >= static_cast<std::int64_t>(std::numeric_limits<T>::min());
  }
  if (!fits)
    throw std::invalid_argument(std::string(what) +
                                ": not a whole number in its range: " + value.dump());
  return value.get<T>();
}

/// The entry `key` of an object as such a number. Also throws json's own exceptions.
template <typename T>
T whole_number(const nlohmann::json& from, const char* key) {
  return to_whole_number<T>(from.at(key), key);
}

// Parses JSON that people write. It rejects an object with the same key twice, for which other
// readers take the last value.

/// Throws std::invalid_argument: "line 3, column 7: ',' or '}' is expected, not ]".
nlohmann::json parse_user_json(std::string_view text);

/// A part of such a file, and its place in it, as "models[2].seconds". Its members throw
/// std::invalid_argument, which names the place.
struct JsonPart {
  const nlohmann::json& value;
  std::string where;

  [[noreturn]] void refuse(const std::string& why) const;
  JsonPart at(const char* key) const;
  /// Refuses entries of the object with other keys: a typing error would else say nothing.
  void refuse_others(std::initializer_list<std::string_view> keys) const;
  /// None: the object has no such entry.
  std::optional<JsonPart> find(const char* key) const;
  std::vector<JsonPart> entries() const;
  std::string text() const;
  /// A time or an error: from 0 to 10^6, so that sums stay far from overflowing.
  double number() const;
  std::uint64_t count(std::uint64_t most = UINT64_MAX) const;
};

/// Is this such a file? `kind` is the text of its entry "file". Errors: VersionMismatch. Throws as
/// JsonPart.
Status check_file_kind(const JsonPart& file, const char* kind, int format);

/// Reads a file of that kind and format by `read`, which throws as JsonPart. Errors: CorruptFile,
/// whose message begins with `what`; VersionMismatch.
template <typename T>
Result<T> read_json_file(std::string_view text, const char* kind, int format, const char* what,
                         T (*read)(const JsonPart&)) {
  try {
    const nlohmann::json from = parse_user_json(text);
    const JsonPart file{from, ""};
    if (const Status status = check_file_kind(file, kind, format); !status) {
      return tl::unexpected<Error>(status.error());
    }
    return read(file);
  } catch (const std::invalid_argument& error) {
    return fail(ErrorKind::CorruptFile, std::string(what) + ": " + error.what());
  }
}

// Parses JSON texts when memory may run out. The library's own values allocate while they are
// destroyed, which then ends the process; these do not. Internal to runtime.

class JsonTree {
 public:
  JsonTree() = default;
  ~JsonTree();
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  /// Is the text JSON? Throws std::bad_alloc.
  bool parse(std::string_view text);
  /// Parses as parse_user_json. Returns the message of its error; empty if there is none.
  std::string parse_user(std::string_view text);
  const nlohmann::json& root() const { return root_; }

 private:
  nlohmann::json root_;
};

}  // namespace cinch::rt
