// parse() runs the lexer, the layout of tokens and the grammar, and catches Spirit's exceptions.
#include "dsl/syntax/grammar/grammar.h"

#include <algorithm>

#include "dsl/syntax/syntax.h"
#include "dsl/syntax/token.h"

namespace cinch::dsl {

namespace grammar {

namespace {

// Steps over the pair of brackets at `at`, or over the single token there.
Iterator skip_token(Iterator begin, Iterator at) {
  const bool opens = at->partner != Token::kNone && begin + at->partner > at;
  return (opens ? begin + at->partner : at) + 1;
}

}  // namespace

void recover_line(Iterator& first, Iterator last, const Failure& failure, TreeBuilder& builder) {
  builder.report_expected(*failure.where(), failure.which());
  while (first != last && first->kind != TokenKind::EndOfFile) {
    if (first->kind == TokenKind::RBrace) return;
    const bool is_end = first->kind == TokenKind::End;
    first = skip_token(builder.stream_begin(), first);
    // A block on a line of its own belongs to the mistake before it.
    if (is_end && first->kind != TokenKind::LBrace) return;
  }
}

void recover_entry(Iterator& first, Iterator last, const Failure& failure, TreeBuilder& builder) {
  builder.report_expected(*failure.where(), failure.which());
  const auto closes = [&](const Token& token) {
    return token.partner != Token::kNone && builder.stream_begin() + token.partner < &token;
  };
  while (first != last && first->kind != TokenKind::EndOfFile) {
    if (first->kind == TokenKind::Comma || closes(*first)) return;
    first = skip_token(builder.stream_begin(), first);
  }
}

}  // namespace grammar

namespace {

ast::Module run_grammar(const TokenStream& stream, DiagSink& sink) {
  TreeBuilder builder(stream, sink);
  const auto context = grammar::x3::make_context<grammar::BuilderTag>(builder);
  grammar::Iterator first = stream.tokens.data();
  const grammar::Iterator last = first + stream.tokens.size();
  grammar::x3::unused_type unused;
  try {
    parse_rule(grammar::file, first, last, context, unused);
  } catch (const ParseStopped&) {  // NOLINT(bugprone-empty-catch): the thrower reported it
  } catch (const grammar::Failure& failure) {
    builder.report_expected(*failure.where(), failure.which());
  }
  return builder.take();
}

// Passes on mistakes of lexer, layout and grammar in the order of the text, up to kMaxSyntaxErrors.
void pass_on(const DiagSink& found, DiagSink& sink) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  for (const Diagnostic& diag : found.all()) order.emplace_back(diag.span.begin, order.size());
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Diagnostic& diag = found.all()[order[i].second];
    if (i == kMaxSyntaxErrors) {
      sink.report<DiagKind::TooManyErrors>(diag.span);
      return;
    }
    sink.add(diag);
  }
}

}  // namespace

ast::Module parse(const SourceBuffer& source, DiagSink& sink) {
  ast::Module empty;
  empty.file = source.id();
  if (source.text().size() > kMaxSourceBytes) {
    sink.report<DiagKind::FileTooLarge>(Span{source.id(), 0, 0}, source.text().size(),
                                        kMaxSourceBytes);
    return empty;
  }
  DiagSink found;
  const TokenStream stream = lay_out(lex(source, found), found);
  ast::Module module = run_grammar(stream, found);
  module.file = source.id();
  module.comments = stream.comments;
  pass_on(found, sink);
  return module;
}

}  // namespace cinch::dsl
