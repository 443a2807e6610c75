// Diagnostics: what is wrong with a user's program, as data. Text is made only when a renderer asks
// for it. A kind is one row of diag.def; report<Kind>(span, args…) does not compile with a wrong
// number of arguments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dsl/source/source.h"
#include "runtime/core/nearest_name.h"

namespace cinch::dsl {

enum class Severity : std::uint8_t { Error, Warning, Note };

/// "error", "warning" or "note".
constexpr std::string_view severity_name(Severity severity) {
  if (severity == Severity::Error) return "error";
  return severity == Severity::Warning ? "warning" : "note";
}

enum class DiagKind : std::uint16_t {
#define CINCH_DIAG(name, severity, code, text, help) name,
#include "dsl/diag/diag.def"
#undef CINCH_DIAG
};

/// One row of diag.def.
struct DiagInfo {
  std::string_view name;
  Severity severity;
  std::string_view code;
  std::string_view text;
  std::string_view help;
};

inline constexpr DiagInfo kDiagTable[] = {
#define CINCH_DIAG(name, severity, code, text, help) \
  DiagInfo{#name, Severity::severity, code, text, help},
#include "dsl/diag/diag.def"
#undef CINCH_DIAG
};
inline constexpr std::size_t kNumDiagKinds = sizeof(kDiagTable) / sizeof(kDiagTable[0]);

constexpr const DiagInfo& diag_info(DiagKind kind) {
  return kDiagTable[static_cast<std::size_t>(kind)];
}

/// Number of arguments that a kind's template asks for: one more than its largest {i}.
constexpr std::size_t diag_arity(DiagKind kind) {
  const std::string_view text = diag_info(kind).text;
  std::size_t arity = 0;
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    const bool is_slot =
        text[i] == '{' && text[i + 2] == '}' && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (!is_slot) continue;
    const std::size_t needed = static_cast<std::size_t>(text[i + 1] - '0') + 1;
    if (needed > arity) arity = needed;
  }
  return arity;
}

/// An argument of a message: text, a whole number or a float.
using DiagArg = std::variant<std::string, std::int64_t, double>;

/// A second place with a few words: `declared here`.
struct Label {
  Span span;
  std::string text;
};

/// A further sentence, with a place where it has one.
struct Note {
  std::string text;
  std::optional<Span> span;
};

/// A replacement that probably cures the error; renderers show it as `did you mean …`.
struct Suggestion {
  Span span;
  std::string replacement;
};

/// One mistake in the user's program.
struct Diagnostic {
  DiagKind kind;
  Span span;
  std::vector<DiagArg> args;
  std::vector<Label> labels;
  std::vector<Note> notes;
  std::optional<Suggestion> suggestion;

  Severity severity() const { return diag_info(kind).severity; }
  std::string_view code() const { return diag_info(kind).code; }

  /// Each adds one thing and returns this diagnostic, so that a report reads as one sentence.
  Diagnostic& label(Span where, std::string text);
  Diagnostic& note(std::string text);
  Diagnostic& note(Span where, std::string text);
  /// `did you mean REPLACEMENT` for the text under `where`; an empty replacement adds nothing.
  Diagnostic& suggest(Span where, std::string replacement);
};

/// The message of a diagnostic, its arguments put in: no position, no severity.
std::string message(const Diagnostic& diag);

/// Makes a DiagArg of anything that a message may take.
inline DiagArg make_diag_arg(DiagArg value) {
  return value;
}
inline DiagArg make_diag_arg(std::string value) {
  return value;
}
inline DiagArg make_diag_arg(std::string_view value) {
  return std::string(value);
}
inline DiagArg make_diag_arg(const char* value) {
  return std::string(value);
}
inline DiagArg make_diag_arg(double value) {
  return value;
}
template <class Integer>
  requires std::is_integral_v<Integer>
DiagArg make_diag_arg(Integer value) {
  return static_cast<std::int64_t>(value);
}

/// Collects diagnostics in the order they are found. Stages go on after an error and stop at their
/// end if has_errors().
class DiagSink {
 public:
  /// Adds a diagnostic; the reference is good until the next report.
  template <DiagKind kKind, class... Args>
  Diagnostic& report(Span span, Args&&... args) {
    static_assert(sizeof...(Args) == diag_arity(kKind),
                  "arguments and template of diag.def differ");
    return add(Diagnostic{kKind, span, {make_diag_arg(std::forward<Args>(args))...}, {}, {}, {}});
  }
  /// The same for a diagnostic made elsewhere.
  Diagnostic& add(Diagnostic diag);

  const std::vector<Diagnostic>& all() const { return all_; }
  std::size_t num_errors() const { return num_errors_; }
  bool has_errors() const { return num_errors_ > 0; }

 private:
  std::vector<Diagnostic> all_;
  std::size_t num_errors_ = 0;
};

using cinch::nearest_name;

}  // namespace cinch::dsl
