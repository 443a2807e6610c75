// Bodies of uri.h.
#include "compiler/lsp/protocol/uri.h"

#include <filesystem>

#include "dsl/diag/render.h"

namespace cinch::lsp {

namespace {

constexpr std::string_view kFileScheme = "file://";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool has_scheme(std::string_view text) {
  const std::size_t colon = text.find(':');
  // `untitled:Untitled-1`; a path with a colon begins with a slash or a dot.
  return colon != std::string_view::npos && colon > 1 && text.find('/') > colon;
}

}  // namespace

std::string path_of_uri(std::string_view uri) {
  if (!uri.starts_with(kFileScheme)) return std::string(uri);
  uri.remove_prefix(kFileScheme.size());
  // A host before the path: `file://localhost/home`.
  if (const std::size_t slash = uri.find('/'); slash != std::string_view::npos) {
    uri.remove_prefix(slash);
  }
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    const bool is_escape = uri[i] == '%' && i + 2 < uri.size() && hex_value(uri[i + 1]) >= 0 &&
                           hex_value(uri[i + 2]) >= 0;
    if (is_escape) {
      path += static_cast<char>(hex_value(uri[i + 1]) * 16 + hex_value(uri[i + 2]));
      i += 2;
    } else {
      path += uri[i];
    }
  }
  return std::filesystem::path(path).lexically_normal().string();
}

std::string uri_of_path(const std::string& path) {
  if (has_scheme(path)) return path;
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  return std::string(kFileScheme) + dsl::to_uri(error ? path : absolute);
}

}  // namespace cinch::lsp
