// What a compressor claims, what it sends and what it must move.
#include <fmt/format.h>

#include "compiler/lsp/describe.h"

namespace cinch::lsp {

std::string compressor_text(const Analysis& analysis, const sema::FileUnit& unit,
                            const std::string& name) {
  (void)analysis;
  (void)unit;
  (void)name;
  return "";
}

}  // namespace cinch::lsp
