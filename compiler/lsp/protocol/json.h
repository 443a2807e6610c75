// The Language Server Protocol, version 3.17: positions, URIs, and the JSON that several features
// share.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/source/source.h"

namespace cinch::lsp {
/// A place in a text as editors count it: lines and UTF-16 code units, both from 0.
struct Position {
  std::uint32_t line = 0;
  std::uint32_t character = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

/// Converts between positions and offsets in bytes of UTF-8. The text must outlive this. `\n`,
/// `\r\n` and `\r` end a line.
class TextPositions {
 public:
  explicit TextPositions(std::string_view text);

  /// An offset after the end counts as the end.
  Position position(std::uint32_t offset) const;
  /// A line after the last means the end of the text; a character after the end of a line means the
  /// end of that line. A place within a code point means its begin.
  std::uint32_t offset(Position position) const;

 private:
  std::string_view text_;
  std::vector<std::uint32_t> line_starts_;
};

// Editors name files by URIs: `file:///home/me/mine.cinch`, with special bytes as %XX (RFC 3986).

/// The path of a `file:` URI. Any other URI stays as it is: a text that is not yet a file has one,
/// too.
std::string path_of_uri(std::string_view uri);
/// The `file:` URI of a path, which is made absolute; a URI stays as it is.
std::string uri_of_path(const std::string& path);

using Json = nlohmann::json;

/// Error codes of JSON-RPC and the protocol.
enum class ErrorCode : std::int32_t {
  ParseError = -32700,
  InvalidRequest = -32600,
  MethodNotFound = -32601,
  InvalidParams = -32602,
  InternalError = -32603,
  ServerNotInitialized = -32002,
  RequestFailed = -32803,
  RequestCancelled = -32800,
};

/// Ends a request with an error that the editor shows.
struct RequestError {
  ErrorCode code;
  std::string message;
};

Json to_json(Position position);
/// Throws nlohmann::json::exception if it is not a position.
Position position_of(const Json& json);
Json range_json(const TextPositions& positions, dsl::Span span);
/// A `Location`: a file and a range in it.
Json location_json(const dsl::SourceBuffer& source, dsl::Span span);
/// Text as an editor renders it: Markdown.
Json markdown(const std::string& text);

// Replaces unpaired halves of UTF-16 pairs. JSON can contain them, and editors send them while
// somebody types; UTF-8, in which documents are kept, has none.

/// The JSON text with U+FFFD for each such half, whether it is an escape (`\ud83d`) or three bytes.
/// Both are one UTF-16 unit, so that positions stay.
std::string without_lone_surrogates(std::string json);

}  // namespace cinch::lsp
