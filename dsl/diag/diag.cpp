// Builds diagnostics and their messages, and finds the known name nearest to a misspelled one.
#include "dsl/diag/diag.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>

namespace cinch::dsl {

Diagnostic& Diagnostic::label(Span where, std::string text) {
  labels.push_back({where, std::move(text)});
  return *this;
}

Diagnostic& Diagnostic::note(std::string text) {
  notes.push_back({std::move(text), std::nullopt});
  return *this;
}

Diagnostic& Diagnostic::note(Span where, std::string text) {
  notes.push_back({std::move(text), where});
  return *this;
}

Diagnostic& Diagnostic::suggest(Span where, std::string replacement) {
  if (!replacement.empty()) suggestion = Suggestion{where, std::move(replacement)};
  return *this;
}

std::string message(const Diagnostic& diag) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const DiagArg& arg : diag.args) {
    std::visit([&](const auto& value) { store.push_back(value); }, arg);
  }
  const std::string_view text = diag_info(diag.kind).text;
  return fmt::vformat(fmt::string_view(text.data(), text.size()), store);
}

Diagnostic& DiagSink::add(Diagnostic diag) {
  if (diag.severity() == Severity::Error) ++num_errors_;
  all_.push_back(std::move(diag));
  return all_.back();
}

}  // namespace cinch::dsl
