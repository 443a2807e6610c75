// format(): the tree tells where groups, breaks and indents are, the cursor supplies tokens and
// comments. The layout depends on the tree alone, except for comments and for single blank lines
// between statements.
#include "dsl/syntax/printer/declaration_printer.h"
#include "dsl/syntax/syntax.h"
#include "dsl/syntax/token_layout.h"

namespace cinch::dsl {

std::string format(const SourceBuffer& source, const ast::Module& module) {
  // parse() has reported what there is to report; the text is the same.
  DiagSink ignored;
  TokenStream stream = lay_out(lex(source, ignored), ignored);
  return DeclarationPrinter(source, std::move(stream), module).run();
}

}  // namespace cinch::dsl
