// How draws are numbered (docs/language_bits.md): every compressor instance has numbers of its own
// for shared draws and for the others. A call site's number counts the sites before it, each once;
// what loops drew beyond that is added while running.
#pragma once
#include <cstdint>

#include "dsl/sema/checked.h"

namespace cinch::lower {

// Draws that are numbered together; sites of one space differ in the low half only.
inline std::uint32_t draw_space(const sema::Expr& draw) {
  const bool is_owners = (draw.site & 0xe000) == sema::kOwnerSites;
  return (draw.site >> 16) << 2 | (is_owners ? 2 : 0) | (draw.shared ? 1 : 0);
}

}  // namespace cinch::lower
