// JSON of the Language Server Protocol, version 3.17: the parts that several features share.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/lsp/protocol/text_positions.h"
#include "dsl/source/source.h"

namespace cinch::lsp {

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
/// Text as an editor renders it: Markdown.
Json markdown(const std::string& text);

}  // namespace cinch::lsp
