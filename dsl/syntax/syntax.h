// The public functions of dsl/syntax: from text to tree, from tree to formatted text, and from tree
// to a dump.
#pragma once

#include <cstddef>
#include <string>

#include "dsl/diag/diag.h"
#include "dsl/source/source.h"
#include "dsl/syntax/ast.h"

namespace cinch::dsl {

/// Longer files are rejected with FileTooLarge.
inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
/// The parser gives up with TooManyErrors after this many mistakes. With that error, there are as
/// many diagnostics as renderers show.
inline constexpr std::size_t kMaxSyntaxErrors = 49;

/// Parses one file. Reports mistakes to `sink`. After mistakes, the tree holds what could be
/// parsed, and only syntax tools may use it, not the checker. Takes linear time and never throws,
/// for any input.
ast::Module parse(const SourceBuffer& source, DiagSink& sink);

/// The canonical layout of a file that parse() accepts (`module` is its tree): indents by two
/// blanks, at most 100 columns where possible, with every comment kept. format(format(x)) is
/// format(x), and the tree stays the same except for spans.
std::string format(const SourceBuffer& source, const ast::Module& module);

/// The tree as indented text without spans, the same for all layouts of a program: `--emit=ast`.
std::string dump(const ast::Module& module);

}  // namespace cinch::dsl
