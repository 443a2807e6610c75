#include "dsl/diag/render.h"

#include <fmt/format.h>

#include <algorithm>

namespace cinch::dsl {

namespace {

std::string more_of(std::size_t count, std::string_view noun) {
  return fmt::format("{} more {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

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
