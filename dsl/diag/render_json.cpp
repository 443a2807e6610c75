// Diagnostics for machines: our own JSON and SARIF 2.1.0 (OASIS Standard, March 2020).
#include <algorithm>
#include <nlohmann/json.hpp>

#include "dsl/diag/render.h"

namespace cinch::dsl {

std::string to_uri(std::string_view name) {
  constexpr char kHex[] = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~/";
  std::string uri;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_alnum =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_alnum || kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return uri;
}

namespace {

using Json = nlohmann::ordered_json;

// JSON cannot hold bytes that are not UTF-8, which source text may contain, so this replaces them.
std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// ---- JSON

void put_place(Json& json, const Span& span, const SourceSet& sources) {
  const SourceBuffer* source = sources.find(span.file);
  if (!source) return;
  const LineColumn begin = source->position(span.begin);
  const LineColumn end = source->position(span.end);
  json["file"] = source->name();
  json["line"] = begin.line;
  json["column"] = begin.column;
  json["end_line"] = end.line;
  json["end_column"] = end.column;
  json["begin_byte"] = span.begin;
  json["end_byte"] = span.end;
}

Json placed_text(const std::string& text, const Span& span, const SourceSet& sources) {
  Json json;
  json["message"] = text;
  put_place(json, span, sources);
  return json;
}

Json to_json(const Diagnostic& diag, const SourceSet& sources) {
  Json json;
  json["severity"] = severity_name(diag.severity());
  json["code"] = diag.code();
  json["kind"] = diag_info(diag.kind).name;
  json["message"] = message(diag);
  json["args"] = Json::array();
  for (const DiagArg& arg : diag.args) {
    std::visit([&](const auto& value) { json["args"].push_back(value); }, arg);
  }
  put_place(json, diag.span, sources);
  json["labels"] = Json::array();
  for (const Label& label : diag.labels) {
    json["labels"].push_back(placed_text(label.text, label.span, sources));
  }
  json["notes"] = Json::array();
  for (const Note& note : diag.notes) {
    json["notes"].push_back(placed_text(note.text, note.span.value_or(Span{}), sources));
  }
  if (diag.suggestion) {
    Json suggestion;
    suggestion["replacement"] = diag.suggestion->replacement;
    put_place(suggestion, diag.suggestion->span, sources);
    json["suggestion"] = suggestion;
  }
  return json;
}

// ---- SARIF

Json region(const SourceBuffer& source, const Span& span) {
  const LineColumn begin = source.position(span.begin);
  const LineColumn end = source.position(span.end);
  return {{"startLine", begin.line},
          {"startColumn", begin.column},
          {"endLine", end.line},
          {"endColumn", end.column}};
}

Json location(const SourceBuffer& source, const Span& span) {
  Json json;
  json["physicalLocation"] = {{"artifactLocation", {{"uri", to_uri(source.name())}}},
                              {"region", region(source, span)}};
  return json;
}

Json related(const Diagnostic& diag, const SourceSet& sources) {
  Json list = Json::array();
  const auto add = [&](const Span& span, const std::string& text) {
    const SourceBuffer* source = sources.find(span.file);
    if (!source) return;
    Json json = location(*source, span);
    json["message"] = {{"text", text}};
    list.push_back(json);
  };
  for (const Label& label : diag.labels) add(label.span, label.text);
  for (const Note& note : diag.notes) add(note.span.value_or(Span{}), note.text);
  return list;
}

Json fixes(const Suggestion& suggestion, const SourceBuffer& source) {
  Json replacement;
  replacement["deletedRegion"] = region(source, suggestion.span);
  replacement["insertedContent"] = {{"text", suggestion.replacement}};
  Json change;
  change["artifactLocation"] = {{"uri", to_uri(source.name())}};
  change["replacements"] = Json::array({replacement});
  Json fix;
  fix["description"] = {{"text", "did you mean `" + suggestion.replacement + "`?"}};
  fix["artifactChanges"] = Json::array({change});
  return Json::array({fix});
}

Json result(const Diagnostic& diag, const SourceSet& sources, std::size_t rule_idx) {
  Json json;
  json["ruleId"] = diag.code();
  json["ruleIndex"] = rule_idx;
  json["level"] = severity_name(diag.severity());
  // SARIF cannot express notes without a place, so they follow the message.
  std::string text = message(diag);
  for (const Note& note : diag.notes) {
    if (!note.span) text += "\nnote: " + note.text;
  }
  json["message"] = {{"text", text}};
  if (const SourceBuffer* source = sources.find(diag.span.file)) {
    json["locations"] = Json::array({location(*source, diag.span)});
  }
  if (Json list = related(diag, sources); !list.empty()) json["relatedLocations"] = list;
  if (diag.suggestion) {
    const SourceBuffer* source = sources.find(diag.suggestion->span.file);
    if (source) json["fixes"] = fixes(*diag.suggestion, *source);
  }
  return json;
}

Json rule(DiagKind kind) {
  const DiagInfo& info = diag_info(kind);
  Json json;
  json["id"] = info.code;
  json["name"] = info.name;
  json["shortDescription"] = {{"text", info.text}};
  if (!info.help.empty()) json["help"] = {{"text", info.help}};
  json["defaultConfiguration"] = {{"level", severity_name(info.severity)}};
  return json;
}

}  // namespace

std::string render_json(const std::vector<Diagnostic>& diags, const SourceSet& sources) {
  Json json;
  const Shown shown = choose_shown(diags);
  json["errors"] = shown.num_errors;
  json["left_out"] = shown.num_left_out();
  json["diagnostics"] = Json::array();
  for (const Diagnostic* diag : shown.diags) json["diagnostics"].push_back(to_json(*diag, sources));
  return to_text(json);
}

std::string render_sarif(const std::vector<Diagnostic>& diags, const SourceSet& sources,
                         const std::string& tool_version) {
  std::vector<DiagKind> kinds;
  Json results = Json::array();
  const Shown shown = choose_shown(diags);
  for (const Diagnostic* diag : shown.diags) {
    const auto found = std::find(kinds.begin(), kinds.end(), diag->kind);
    const auto rule_idx = static_cast<std::size_t>(found - kinds.begin());
    if (found == kinds.end()) kinds.push_back(diag->kind);
    results.push_back(result(*diag, sources, rule_idx));
  }
  Json rules = Json::array();
  for (const DiagKind kind : kinds) rules.push_back(rule(kind));
  Json driver = {{"name", "cinch"}, {"version", tool_version}, {"rules", rules}};
  Json run;
  run["tool"] = {{"driver", driver}};
  run["columnKind"] = "unicodeCodePoints";
  run["results"] = results;
  if (shown.num_left_out() > 0) {
    Json notification, invocation;
    notification["level"] = "note";
    notification["message"] = {{"text", shown.left_out_text()}};
    invocation["executionSuccessful"] = true;
    invocation["toolExecutionNotifications"] = Json::array({notification});
    run["invocations"] = Json::array({invocation});
  }
  Json log;
  log["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  log["version"] = "2.1.0";
  log["runs"] = Json::array({run});
  return to_text(log);
}

}  // namespace cinch::dsl
