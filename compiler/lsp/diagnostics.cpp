// Diagnostics of the checker in the protocol's form.
#include <string>

#include "compiler/lsp/features.h"
#include "compiler/lsp/protocol/json.h"
#include "dsl/diag/diag.h"
#include "dsl/diag/render.h"
#include "runtime/core/visible_text.h"

namespace cinch::lsp {

namespace {

// DiagnosticSeverity of the protocol.
int severity_number(dsl::Severity severity) {
  if (severity == dsl::Severity::Error) return 1;
  return severity == dsl::Severity::Warning ? 2 : 3;
}

// Labels and notes with a place.
Json related_json(const Analysis& analysis, const dsl::Diagnostic& diag) {
  Json list = Json::array();
  const auto add = [&](Span span, const std::string& text) {
    const dsl::SourceBuffer* source = analysis.sources().find(span.file);
    if (source == nullptr) return;
    list.push_back(
        {{"location", location_json(*source, span)}, {"message", rt::visible_text(text)}});
  };
  for (const dsl::Label& label : diag.labels) add(label.span, label.text);
  for (const dsl::Note& note : diag.notes) {
    if (note.span) add(*note.span, note.text);
  }
  return list;
}

std::string text_with_notes(const dsl::Diagnostic& diag) {
  std::string text = dsl::message(diag);
  for (const dsl::Note& note : diag.notes) {
    if (!note.span) text += "\nnote: " + note.text;
  }
  if (diag.suggestion) text += "\ndid you mean `" + diag.suggestion->replacement + "`?";
  return text;
}

}  // namespace

Json diagnostic_json(const Analysis& analysis, const TextPositions& positions,
                     const dsl::Diagnostic& diag) {
  Json json = {{"severity", severity_number(diag.severity())},
               {"code", diag.code()},
               {"source", "cinch"},
               {"message", rt::visible_text(text_with_notes(diag))}};
  Json related = related_json(analysis, diag);
  const dsl::SourceBuffer* source = analysis.sources().find(diag.span.file);
  Span span = diag.span;
  if (source == nullptr) {
    span = {analysis.source().id(), 0, 0};
  } else if (source != &analysis.source()) {
    // The place is in a file that this one imports.
    span = analysis.import_of(source->name()).value_or(Span{analysis.source().id(), 0, 0});
    const Json place = {{"location", location_json(*source, diag.span)},
                        {"message", "the mistake is here"}};
    related.insert(related.begin(), place);
  }
  json["range"] = range_json(positions, span);
  if (!related.empty()) json["relatedInformation"] = std::move(related);
  return json;
}

Json diagnostics(const Analysis& analysis) {
  const TextPositions positions(analysis.source().text());
  Json list = Json::array();
  const dsl::Shown shown = dsl::choose_shown(analysis.sink().all());
  for (const dsl::Diagnostic* diag : shown.diags) {
    list.push_back(diagnostic_json(analysis, positions, *diag));
  }
  return list;
}

}  // namespace cinch::lsp
