// Renders diagnostics as text for people, and as JSON and SARIF 2.1 for machines. Renderers only
// return strings.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "dsl/diag/diag.h"
#include "dsl/source/source.h"

namespace cinch::dsl {

/// Renderers show at most this many diagnostics of a run and count the others.
inline constexpr std::size_t kMostShown = 50;

struct TextOptions {
  /// With ANSI colours.
  bool has_color = false;
};

/// Prints `file:line:column: error[S014]: message`, the source line, and a caret under the span.
/// Labels, notes and the suggestion follow in the same form. Ends with a line end. For a span
/// without a file it prints only the message.
std::string render_text(const Diagnostic& diag, const SourceSet& sources, TextOptions options = {});
/// Renders all diagnostics, then says how many are not shown.
std::string render_text(const std::vector<Diagnostic>& diags, const SourceSet& sources,
                        TextOptions options = {});

/// One JSON object: {"errors": number of all, "left_out": number, "diagnostics": [{severity, code,
/// kind, message, args, file, line, column, end_line, end_column, begin_byte, end_byte, labels,
/// notes, suggestion}]}. Lines and columns count from 1, columns in code points; ends are
/// exclusive. A label or note has a message and, if it has a place, also file … end_byte.
std::string render_json(const std::vector<Diagnostic>& diags, const SourceSet& sources);

/// A SARIF 2.1.0 log with one run of the tool `cinch`; `tool_version` is the project's.
std::string render_sarif(const std::vector<Diagnostic>& diags, const SourceSet& sources,
                         const std::string& tool_version);

/// The diagnostics that a renderer shows: at most kMostShown, in their order. Errors take
/// precedence over warnings, earlier ones over later ones.
struct Shown {
  std::vector<const Diagnostic*> diags;
  std::size_t num_errors = 0;  // including those that are not shown
  std::size_t errors_left_out = 0, others_left_out = 0;

  std::size_t num_left_out() const { return errors_left_out + others_left_out; }
  /// "4950 more errors and 2 more warnings are not shown". Empty if all are shown.
  std::string left_out_text() const;
};
Shown choose_shown(const std::vector<Diagnostic>& diags);

/// A file name as a URI reference: everything but unreserved characters and `/` becomes %XX (RFC
/// 3986).
std::string to_uri(std::string_view name);

}  // namespace cinch::dsl
