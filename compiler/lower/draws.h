// How draws are numbered (docs/language_bits.md): every compressor instance has a space of its own
// for shared draws and one for the others; in each, call sites are numbered in source order and
// loop iterations counted.
#pragma once
#include <cstdint>

#include "compiler/ir/ir.h"
#include "dsl/sema/checked.h"

namespace cinch::lower {

// Call sites of one space differ in the low half of `site` only.
inline std::uint32_t draw_space(const sema::Expr& draw) {
  return (draw.site >> 16) << 1 | (draw.shared ? 1 : 0);
}

// Where the words of a draw come from.
inline ir::DrawSite draw_site(const sema::Expr& draw) {
  return {draw.stream.value_or(draw.site), draw.shared};
}

}  // namespace cinch::lower
