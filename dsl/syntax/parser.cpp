// parse(): lexer, layout, grammar. Spirit's own exceptions end here.
#include "dsl/syntax/grammar.h"
#include "dsl/syntax/syntax.h"
#include "dsl/syntax/token_layout.h"

namespace cinch::dsl {

namespace grammar {

namespace {

// Behind the pair of brackets at `at`, or behind the single token there.
Iterator skip_token(Iterator begin, Iterator at) {
  const bool opens = at->partner != Token::kNone && begin + at->partner > at;
  return (opens ? begin + at->partner : at) + 1;
}

}  // namespace

void recover(Iterator& first, Iterator last, const x3::expectation_failure<Iterator>& failure,
             TreeBuilder& builder) {
  builder.report_expected(*failure.where(), failure.which());
  const Iterator stream = builder.stream_begin();
  const Iterator start = first;
  while (first != last && first->kind != TokenKind::EndOfFile) {
    if (first->kind == TokenKind::RBrace) return;
    const bool is_end = first->kind == TokenKind::End;
    first = skip_token(stream, first);
    // A block that stands on a line of its own belongs to what was wrong before it.
    if (is_end && first->kind != TokenKind::LBrace && first != start) return;
  }
}

}  // namespace grammar

ast::Module parse(const SourceBuffer& source, DiagSink& sink) {
  ast::Module empty;
  empty.file = source.id();
  if (source.text().size() > kMaxSourceBytes) {
    sink.report<DiagKind::FileTooLarge>(Span{source.id(), 0, 0}, source.text().size(),
                                        kMaxSourceBytes);
    return empty;
  }
  const TokenStream stream = lay_out(lex(source, sink), sink);
  TreeBuilder builder(stream, sink);
  const auto context = grammar::x3::make_context<grammar::BuilderTag>(builder);
  grammar::Iterator first = stream.tokens.data();
  const grammar::Iterator last = first + stream.tokens.size();
  grammar::x3::unused_type unused;
  try {
    parse_rule(grammar::file, first, last, context, unused);
  } catch (const ParseStopped&) {
    // Reported by whoever stopped.
  } catch (const grammar::x3::expectation_failure<grammar::Iterator>& failure) {
    builder.report_expected(*failure.where(), failure.which());
  }
  ast::Module module = builder.take();
  module.file = source.id();
  module.comments = stream.comments;
  return module;
}

}  // namespace cinch::dsl
