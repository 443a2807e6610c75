// Diagnostics as text for people, as JSON and as SARIF 2.1 for machines. Renderers only return
// strings.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "dsl/diag/diag.h"
#include "dsl/source/source.h"

namespace cinch::dsl {

/// No renderer shows more diagnostics of a run; it counts the others.
inline constexpr std::size_t kMostShown = 50;

struct TextOptions {
  /// ANSI colours.
  bool has_color = false;
};

/// `file:line:column: error: message`, the source line, a caret under the span; then labels, notes
/// and the suggestion in the same shape. Ends with a line end. A span without a file gives the
/// message alone.
std::string render_text(const Diagnostic& diag, const SourceSet& sources, TextOptions options = {});
/// One after another, and how many are not shown.
std::string render_text(const std::vector<Diagnostic>& diags, const SourceSet& sources,
                        TextOptions options = {});

/// One JSON object: {"errors": number of all, "left_out": number, "diagnostics": [{severity, code,
/// kind, message, args, file, line, column, end_line, end_column, begin_byte, end_byte, labels,
/// notes, suggestion}]}; lines and columns count from 1, in code points, ends are exclusive. A
/// label or note has message and, with a place, file … end_byte.
std::string render_json(const std::vector<Diagnostic>& diags, const SourceSet& sources);

/// A SARIF 2.1.0 log with one run of the tool `cinch`; `tool_version` is the project's.
std::string render_sarif(const std::vector<Diagnostic>& diags, const SourceSet& sources,
                         const std::string& tool_version);

/// At most kMostShown of them, in their order: errors before all else, and the first ones.
struct Shown {
  std::vector<const Diagnostic*> diags;
  std::size_t num_errors = 0;  // of all
  std::size_t errors_left_out = 0, others_left_out = 0;

  std::size_t num_left_out() const { return errors_left_out + others_left_out; }
  /// "4950 more errors and 2 more warnings are not shown"; empty where all are.
  std::string left_out_text() const;
};
Shown choose_shown(const std::vector<Diagnostic>& diags);

/// A file name as a URI reference: all but unreserved characters and `/` are written as %XX (RFC
/// 3986).
std::string to_uri(std::string_view name);

}  // namespace cinch::dsl
