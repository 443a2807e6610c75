// list_includes FILE…: prints the include directives of C++ files, one a line: file, line,
// directive and spelled name, with tabs between them. Clang's dependency scanner reads the files
// without opening what they include, so that directives in all branches of #if are listed, and none
// within comments and string literals. Exit status 1: a file cannot be read or scanned.
#include <clang/Basic/TokenKinds.h>
#include <clang/Lex/DependencyDirectivesScanner.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <string_view>

namespace {

namespace scan = clang::dependency_directives_scan;

// Empty for other directives.
std::string_view directive_name(scan::DirectiveKind kind) {
  switch (kind) {
    case scan::pp_include:
      return "include";
    case scan::pp_include_next:
      return "include_next";
    case scan::pp_import:
      return "import";
    case scan::pp___include_macros:
      return "__include_macros";
    default:
      return {};
  }
}

// A token may hold line ends, each behind a backslash.
void print_joined(llvm::StringRef token) {
  llvm::SmallVector<llvm::StringRef> lines;
  token.split(lines, "\\\n");
  for (const llvm::StringRef line : lines) llvm::outs() << line;
}

// Tokens are `#`, the directive's name, the included name (one token, unless it is a macro), and
// the end of the line.
void print_included(llvm::StringRef text, const scan::Directive& directive) {
  for (const scan::Token& token : directive.Tokens.drop_front(2)) {
    if (token.isNot(clang::tok::eod)) print_joined(text.slice(token.Offset, token.getEnd()));
  }
}

bool list_file(const char* path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    llvm::errs() << path << ": " << buffer.getError().message() << "\n";
    return false;
  }
  const llvm::StringRef text = (*buffer)->getBuffer();
  llvm::SmallVector<scan::Token> tokens;
  llvm::SmallVector<scan::Directive> directives;
  if (clang::scanSourceForDependencyDirectives(text, tokens, directives)) {
    llvm::errs() << path << ": its preprocessor directives cannot be read\n";
    return false;
  }
  std::size_t line = 1, counted = 0;  // `line` is the line of the character `counted`
  for (const scan::Directive& directive : directives) {
    const std::string_view name = directive_name(directive.Kind);
    if (name.empty()) continue;
    const unsigned begin = directive.Tokens.front().Offset;
    line += text.slice(counted, begin).count('\n');
    counted = begin;
    llvm::outs() << path << '\t' << line << '\t' << name << '\t';
    print_included(text, directive);
    llvm::outs() << '\n';
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool is_read = true;
  for (int i = 1; i < argc; ++i) is_read = list_file(argv[i]) && is_read;
  return is_read ? 0 : 1;
}
