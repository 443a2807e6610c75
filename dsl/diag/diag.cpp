// Builds diagnostics and their messages, and finds the known name nearest to a misspelled one.
#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>

#include "dsl/diag/render.h"

namespace cinch::dsl {
// The middle of a text that nobody would read, such as a number of 100,000 digits, is left out.
static std::string readable(std::string text) {
  constexpr std::size_t kMost = 400, kFirst = 240, kLast = 60;
  if (text.size() <= kMost) return text;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u;
  };
  // Characters of UTF-8 stay whole.
  std::size_t begin = kFirst, end = text.size() - kLast;
  while (begin > kFirst - 3 && continues(begin)) --begin;
  while (end < text.size() - kLast + 3 && continues(end)) ++end;
  return text.replace(begin, end - begin, "…");
}

Diagnostic& Diagnostic::label(Span where, std::string text) {
  labels.push_back({where, readable(std::move(text))});
  return *this;
}

Diagnostic& Diagnostic::note(std::string text) {
  notes.push_back({readable(std::move(text)), std::nullopt});
  return *this;
}

Diagnostic& Diagnostic::note(Span where, std::string text) {
  notes.push_back({readable(std::move(text)), where});
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
  for (DiagArg& arg : diag.args) {
    if (auto* text = std::get_if<std::string>(&arg)) *text = readable(std::move(*text));
  }
  all_.push_back(std::move(diag));
  return all_.back();
}

static std::string more_of(std::size_t count, std::string_view noun) {
  return fmt::format("{} more {}{}", count, noun, count == 1 ? "" : "s");
}

std::string Shown::left_out_text() const {
  if (num_left_out() == 0) return "";
  std::string text;
  if (errors_left_out > 0) text = more_of(errors_left_out, "error");
  if (errors_left_out > 0 && others_left_out > 0) text += " and ";
  if (others_left_out > 0) text += more_of(others_left_out, "warning");
  return text + (num_left_out() == 1 ? " is not shown" : " are not shown");
}

Shown choose_shown(const std::vector<Diagnostic>& diags) {
  Shown shown;
  const auto is_error = [](const Diagnostic& diag) { return diag.severity() == Severity::Error; };
  shown.num_errors = static_cast<std::size_t>(std::ranges::count_if(diags, is_error));
  std::size_t errors = std::min(shown.num_errors, kMostShown);
  std::size_t others = std::min(diags.size() - shown.num_errors, kMostShown - errors);
  for (const Diagnostic& diag : diags) {
    std::size_t& room = is_error(diag) ? errors : others;
    if (room > 0) {
      --room;
      shown.diags.push_back(&diag);
    } else {
      ++(is_error(diag) ? shown.errors_left_out : shown.others_left_out);
    }
  }
  return shown;
}

}  // namespace cinch::dsl
