// What is known of the expressions and names of one file while it is checked, for editors.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "dsl/source/source.h"

namespace cinch::sema {

/// Types and sizes as messages write them: "[f32; k]", "f32", "the number 4". Bodies are recorded
/// as they are declared, with parameters at their defaults; what is inlined elsewhere, as a fn with
/// the sizes of its arguments, is not.
struct TypeRecord {
  dsl::FileId file = dsl::kNoFile;
  /// By begin and end of an expression or of the name of a declaration. The first one is kept.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> types;

  /// nullptr where nothing is known.
  const std::string* find(dsl::Span span) const {
    const auto at = types.find({span.begin, span.end});
    return at == types.end() || span.file != file ? nullptr : &at->second;
  }
};

}  // namespace cinch::sema
