// The text of the language's own functions, for kernels that embed it (see runtime/core/lang.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cinch::lang {

/// One part: its file name ("exp_log.h") and its text. A part needs the ones before it.
struct SourcePart {
  std::string_view name;
  std::string_view text;
};

/// All parts in the order of dependence.
std::span<const SourcePart> source_parts();
/// All parts joined: a translation unit's opening, without includes.
const std::string& source_text();

}  // namespace cinch::lang
