// The doors of dsl/syntax: text to tree, tree to canonical text, tree to a dump.
#pragma once

#include <cstddef>
#include <string>

#include "dsl/diag/diag.h"
#include "dsl/source/source.h"
#include "dsl/syntax/ast.h"

namespace cinch::dsl {

/// Longer files are refused with FileTooLarge.
inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
/// The parser gives up with TooManyErrors after this many: with it there are as many as are shown.
inline constexpr std::size_t kMaxSyntaxErrors = 49;

/// Parses one file. Mistakes go to `sink`; the tree then holds what could be read and is fit only
/// for further syntax tools, not for the checker. Time is linear in the text; never throws for any
/// input.
ast::Module parse(const SourceBuffer& source, DiagSink& sink);

/// The canonical layout of a file that parse() accepts (`module` is its tree): two blanks per
/// level, at most 100 columns where the text allows it, every comment kept. format(format(x)) is
/// format(x), and the tree stays the same but for spans.
std::string format(const SourceBuffer& source, const ast::Module& module);

/// The tree as indented text without spans, the same for all layouts of a program: `--emit=ast`.
std::string dump(const ast::Module& module);

}  // namespace cinch::dsl
