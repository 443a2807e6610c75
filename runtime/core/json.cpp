#include "runtime/core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

namespace cinch::rt {

namespace {

using nlohmann::json;
using JsonBuilder = nlohmann::detail::json_sax_dom_parser<json>;

// What the grammar expects where the library's parser stopped. It names only its own rule.
std::string_view expected_by(std::string_view message) {
  struct Rule {
    std::string_view in_message, expected;
  };
  constexpr Rule kRules[] = {
      {"; expected end of input", "the end of the text"},
      {"parsing object key", "a key in double quotes"},
      {"parsing object separator", "':'"},
      {"parsing object ", "',' or '}'"},
      {"parsing array ", "',' or ']'"},
  };
  for (const Rule& rule : kRules) {
    if (message.find(rule.in_message) != std::string_view::npos) return rule.expected;
  }
  return "a value";
}

// Builds the tree of a text that people wrote. Stops at what is wrong in it.
class UserJsonReader : public JsonBuilder {
 public:
  UserJsonReader(json& root, std::string_view text)
      : JsonBuilder(root, false), text_(text), source_(std::string(text)) {}

  // Returns what is wrong and where; empty if nothing is.
  std::string read() {
    json::sax_parse(source_, this);
    return problem_;
  }

  // Called by the library's parser.
  bool start_object(std::size_t size) {
    keys_.emplace_back();
    return JsonBuilder::start_object(size);
  }
  bool end_object() {
    keys_.pop_back();
    return JsonBuilder::end_object();
  }
  bool key(std::string& name) {
    if (keys_.back().insert(name).second) return JsonBuilder::key(name);
    const std::string quoted = json(name).dump(-1, ' ', false, json::error_handler_t::replace);
    // The parser has read up to the end of the key.
    const auto end = source_.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in);
    set_problem(static_cast<std::size_t>(end) - quoted.size(),
                fmt::format("{} is there twice in one object", quoted));
    return false;
  }
  // `num_read`: bytes up to the end of what cannot be here; the end of the text counts as one.
  // `last_read` is exact for texts and numbers only.
  template <typename Exception>
  bool parse_error(std::size_t num_read, const std::string& last_read, const Exception& error) {
    constexpr int kNumberTooLarge = 406;  // documented by the library
    const std::string_view message = error.what();
    const std::string_view detail = message.substr(std::min(message.find(" - "), message.size()));
    const std::size_t end = std::min(num_read, text_.size());
    if (error.id == kNumberTooLarge) {
      set_problem(end - last_read.size(), fmt::format("the number {} is too large", last_read));
    } else if (detail.starts_with(" - unexpected end of input")) {
      set_problem(end, fmt::format("the text ends where {} is expected", expected_by(message)));
    } else if (detail.starts_with(" - unexpected string")) {
      set_unexpected(end - last_read.size(), end, message);
    } else if (detail.starts_with(" - unexpected") || detail.starts_with(" - invalid literal")) {
      const auto [first, last] = word_around(end - 1);
      set_unexpected(first, last, message);
    } else {  // a broken text or number, of which the library says what is wrong
      const std::string_view what = detail.substr(std::min<std::size_t>(detail.size(), 3));
      set_problem(num_read - 1, std::string(what.substr(0, what.find("; last read"))));
    }
    return false;
  }

 private:
  // The word or number that the byte `at` belongs to, else that byte alone.
  std::pair<std::size_t, std::size_t> word_around(std::size_t at) const {
    constexpr std::string_view kInWords =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    if (kInWords.find(text_[at]) == std::string_view::npos) return {at, at + 1};
    const std::size_t before = text_.find_last_not_of(kInWords, at);
    return {before == std::string_view::npos ? 0 : before + 1,
            std::min(text_.find_first_not_of(kInWords, at), text_.size())};
  }

  void set_unexpected(std::size_t begin, std::size_t end, std::string_view message) {
    constexpr std::size_t kMostShown = 40;
    const bool is_long = end - begin > kMostShown;
    set_problem(begin, fmt::format("{} is expected, not {}{}", expected_by(message),
                                   text_.substr(begin, is_long ? kMostShown : end - begin),
                                   is_long ? "…" : ""));
  }

  // Columns count characters, as in diagnostics of programs.
  void set_problem(std::size_t at, const std::string& what) {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::ranges::count(before, '\n');
    const std::string_view in_line = before.substr(before.rfind('\n') + 1);
    const auto column =
        1 + std::ranges::count_if(in_line, [](unsigned char c) { return (c & 0xc0u) != 0x80u; });
    problem_ = fmt::format("line {}, column {}: {}", line, column, what);
  }

  std::string_view text_;
  std::istringstream source_;
  std::vector<std::set<std::string>> keys_;  // of the open objects
  std::string problem_;
};

// Deeper than any of our files; deeper trees are destroyed by the library.
constexpr int kMaxDepth = 100;

// Leaves no child within a child: such values are destroyed without allocating.
void take_apart(json& value, int depth) noexcept {
  if (depth > kMaxDepth) return;
  if (auto* array = value.get_ptr<json::array_t*>()) {
    for (json& child : *array) take_apart(child, depth + 1);
    array->clear();
  }
  if (auto* object = value.get_ptr<json::object_t*>()) {
    for (auto& [name, child] : *object) take_apart(child, depth + 1);
    object->clear();
  }
}

}  // namespace

void JsonPart::refuse(const std::string& why) const {
  throw std::invalid_argument(where.empty() ? why : where + ": " + why);
}

std::optional<JsonPart> JsonPart::find(const char* key) const {
  if (!value.is_object()) refuse("is not an object");
  if (!value.contains(key)) return std::nullopt;
  return JsonPart{value.at(key), where.empty() ? key : where + "." + key};
}

void JsonPart::refuse_others(std::initializer_list<std::string_view> keys) const {
  if (!value.is_object()) refuse("is not an object");
  for (const auto& [key, entry] : value.items()) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    JsonPart{entry, where.empty() ? key : where + "." + key}.refuse("is not known");
  }
}

JsonPart JsonPart::at(const char* key) const {
  const std::optional<JsonPart> found = find(key);
  if (!found) refuse(fmt::format("has no \"{}\"", key));
  return *found;
}

std::vector<JsonPart> JsonPart::entries() const {
  if (!value.is_array()) refuse("is not a list");
  std::vector<JsonPart> parts;
  parts.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    parts.push_back({value[i], fmt::format("{}[{}]", where, i)});
  }
  return parts;
}

std::string JsonPart::text() const {
  if (!value.is_string()) refuse("is not a text: " + value.dump());
  return value.get<std::string>();
}

double JsonPart::number() const {
  constexpr double kMost = 1e6;
  const bool is_fine =
      value.is_number() && value.get<double>() >= 0 && value.get<double>() <= kMost;
  if (!is_fine) refuse("is not a number from 0 to 1000000: " + value.dump());
  return value.get<double>();
}

std::uint64_t JsonPart::count(std::uint64_t most) const {
  if (!value.is_number_unsigned()) refuse("is not a whole number of at least 0: " + value.dump());
  const auto number = value.get<std::uint64_t>();
  if (number > most) refuse(fmt::format("is more than {}: {}", most, number));
  return number;
}

Status check_file_kind(const JsonPart& file, const char* kind, int format) {
  const JsonPart name = file.at("file"), number = file.at("format");
  if (name.text() != kind) name.refuse(fmt::format("is not \"{}\"", kind));
  if (number.count() == static_cast<std::uint64_t>(format)) return Ok{};
  return fail(ErrorKind::VersionMismatch,
              fmt::format("{} of format {}, not {}", kind, number.count(), format));
}

json parse_user_json(std::string_view text) {
  json root;
  const std::string problem = UserJsonReader(root, text).read();
  if (!problem.empty()) throw std::invalid_argument(problem);
  return root;
}

JsonTree::~JsonTree() {
  take_apart(root_, 0);
}

bool JsonTree::parse(std::string_view text) {
  // Parses into a member, so that a half-built tree is taken apart, too, if memory runs out.
  JsonBuilder builder(root_, false);
  return json::sax_parse(text.begin(), text.end(), &builder);
}

std::string JsonTree::parse_user(std::string_view text) {
  return UserJsonReader(root_, text).read();
}

}  // namespace cinch::rt
