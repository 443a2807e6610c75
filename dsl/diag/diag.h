// Diagnostics describe, as data, what is wrong with a user's program. Renderers make text from
// them. A kind of diagnostic is one row of diag.def. report<Kind>(span, args…) does not compile
// with a wrong number of arguments.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dsl/source/source.h"
#include "runtime/core/log.h"

namespace cinch::dsl {

enum class Severity : std::uint8_t { Error, Warning, Note };

constexpr std::string_view severity_name(Severity severity) {
  if (severity == Severity::Error) return "error";
  return severity == Severity::Warning ? "warning" : "note";
}

enum class DiagKind : std::uint16_t {
#define CINCH_DIAG(name, severity, code, text, help) name,
#include "dsl/diag/diag.def"
#undef CINCH_DIAG
};

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

/// The number of arguments that a kind's template asks for: one more than its largest {i}.
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

using DiagArg = std::variant<std::string, std::int64_t, double>;

/// A second place with a few words, such as `declared here`.
struct Label {
  Span span;
  std::string text;
};

/// A further sentence, with a place if it has one.
struct Note {
  std::string text;
  std::optional<Span> span;
};

/// A replacement that probably fixes the error. Renderers show it as `did you mean …`.
struct Suggestion {
  Span span;
  std::string replacement;
};

struct Diagnostic {
  DiagKind kind;
  Span span;
  std::vector<DiagArg> args;
  std::vector<Label> labels;
  std::vector<Note> notes;
  std::optional<Suggestion> suggestion;

  Severity severity() const { return diag_info(kind).severity; }
  std::string_view code() const { return diag_info(kind).code; }

  /// Each method adds one thing and returns this diagnostic, so that a report reads as one
  /// sentence.
  Diagnostic& label(Span where, std::string text);
  Diagnostic& note(std::string text);
  Diagnostic& note(Span where, std::string text);
  /// Suggests a replacement for the text under `where`. Does nothing if the replacement is empty.
  Diagnostic& suggest(Span where, std::string replacement);
};

/// The message with its arguments filled in, without position and severity.
std::string message(const Diagnostic& diag);

/// Makes a DiagArg of any type that a message may take.
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

/// Collects diagnostics in the order in which stages find them. A stage goes on after an error, and
/// stops at its end if has_errors().
class DiagSink {
 public:
  /// Adds a diagnostic. The reference is valid until the next report.
  template <DiagKind kKind, class... Args>
  Diagnostic& report(Span span, Args&&... args) {
    static_assert(sizeof...(Args) == diag_arity(kKind),
                  "arguments and template of diag.def differ");
    return add(Diagnostic{kKind, span, {make_diag_arg(std::forward<Args>(args))...}, {}, {}, {}});
  }
  /// Adds a finished diagnostic.
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
