// Clang's format library in the style of this project, for source that people read.
#include <clang/Format/Format.h>
#include <clang/Tooling/Core/Replacement.h>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {

Bytes format_text(std::string_view text, std::string& log) {
  clang::format::FormatStyle style =
      clang::format::getGoogleStyle(clang::format::FormatStyle::LK_Cpp);
  style.ColumnLimit = 100;
  style.SortIncludes = clang::format::FormatStyle::SI_Never;
  style.ReflowComments = false;
  const llvm::StringRef source(text.data(), text.size());
  const auto replacements = clang::format::reformat(
      style, source, {clang::tooling::Range(0, static_cast<unsigned>(text.size()))}, "kernels.cpp");
  auto formatted = clang::tooling::applyAllReplacements(source, replacements);
  if (!formatted) {
    log += llvm::toString(formatted.takeError());
    return {};
  }
  return *formatted;
}

}  // namespace cinch::clang_backend
