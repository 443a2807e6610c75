// Formatting: the canonical layout as one edit of the lines that differ.
#include <algorithm>

#include "compiler/lsp/features.h"
#include "dsl/syntax/syntax.h"

namespace cinch::lsp {

namespace {

std::size_t shared_prefix(std::string_view a, std::string_view b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  const auto length = static_cast<std::size_t>(in_a - a.begin());
  // Whole lines: splits no code point and no `\r\n`.
  const std::size_t line = a.substr(0, length).rfind('\n');
  return line == std::string_view::npos ? 0 : line + 1;
}

std::size_t shared_suffix(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t length = 0;
  while (length < most && a[a.size() - 1 - length] == b[b.size() - 1 - length]) ++length;
  const std::size_t line = a.find('\n', a.size() - length);
  return line == std::string_view::npos ? 0 : a.size() - line - 1;
}

}  // namespace

Json formatting(const Document& document) {
  dsl::SourceSet sources;
  dsl::DiagSink sink;
  const dsl::SourceBuffer& source = sources.add(document.path, document.text);
  const ast::Module module = dsl::parse(source, sink);
  if (sink.has_errors()) return {};
  const std::string laid_out = dsl::format(source, module);
  if (laid_out == document.text) return Json::array();
  std::string_view before = document.text, after = laid_out;
  const std::size_t prefix = shared_prefix(before, after);
  const std::size_t suffix = shared_suffix(before.substr(prefix), after.substr(prefix));
  const Span changed{source.id(), static_cast<std::uint32_t>(prefix),
                     static_cast<std::uint32_t>(before.size() - suffix)};
  const Json edit = {{"range", range_json(TextPositions(before), changed)},
                     {"newText", after.substr(prefix, after.size() - suffix - prefix)}};
  return Json::array({edit});
}

}  // namespace cinch::lsp
