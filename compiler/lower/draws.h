// Numbers draws (docs/language_bits.md). Every compressor instance has one sequence of numbers for
// shared draws and one for the others. A call site's number counts the sites before it, each once;
// the additional draws of loops are added at run time.
#pragma once
#include <cstdint>

#include "dsl/sema/checked.h"

namespace cinch::lower {

// The number space of a draw; sites of one space differ in the low half only.
inline std::uint32_t draw_space(const sema::Expr& draw) {
  const bool is_owners = (draw.site & 0xe000) == sema::kOwnerSites;
  return (draw.site >> 16) << 2 | (is_owners ? 2 : 0) | (draw.shared ? 1 : 0);
}

}  // namespace cinch::lower
