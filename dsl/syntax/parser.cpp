// parse() runs the lexer, the layout of tokens and the grammar, and catches Spirit's exceptions.
#include <algorithm>
#include <iterator>

#include "dsl/syntax/grammar/grammar.h"
#include "dsl/syntax/syntax.h"
#include "dsl/syntax/token.h"

namespace cinch::dsl {
namespace grammar {

// Steps over the pair of brackets at `at`, or over the single token there.
static Iterator skip_token(Iterator begin, Iterator at) {
  const bool opens = at->partner != Token::kNone && begin + at->partner > at;
  return (opens ? begin + at->partner : at) + 1;
}

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
  ast::Module empty{.file = source.id()};
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

// The only table of binary operators, and how programs write the other enums of the tree.

namespace {

struct OperatorRow {
  std::string_view text;
  int precedence;
};

// In the order of ast::BinaryOp.
constexpr OperatorRow kOperators[] = {
    {"*", 9},  {"/", 9}, {"%", 9},  {"@", 9},  {"+", 8},  {"-", 8},  {"<<", 7},
    {">>", 7}, {"&", 6}, {"^", 5},  {"|", 4},  {"==", 3}, {"!=", 3}, {"<", 3},
    {"<=", 3}, {">", 3}, {">=", 3}, {"&&", 2}, {"||", 1},
};
static_assert(std::size(kOperators) == static_cast<std::size_t>(ast::BinaryOp::Or) + 1);

}  // namespace

std::string_view spelling(ast::BinaryOp op) {
  return kOperators[static_cast<std::size_t>(op)].text;
}

int precedence(ast::BinaryOp op) {
  return kOperators[static_cast<std::size_t>(op)].precedence;
}

std::string_view spelling(ast::UnaryOp op) {
  return op == ast::UnaryOp::Negate ? "-" : "!";
}

std::string_view spelling(ast::MethodKind kind) {
  constexpr std::string_view kNames[] = {"encode", "decode", "finish", "sync"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view spelling(ast::Aggregation aggregation) {
  constexpr std::string_view kNames[] = {"", "sum", "min", "max"};
  return kNames[static_cast<std::size_t>(aggregation)];
}

// Tables over token.def: spelling, keywords, descriptions.

namespace {

struct Spelling {
  TokenKind kind;
  std::string_view text;
};

constexpr Spelling kKeywords[] = {
#define CINCH_KEYWORD(kind, text) {TokenKind::kind, text},
#define CINCH_PUNCT(kind, text)
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
};

constexpr std::string_view kSpellings[] = {
#define CINCH_KEYWORD(kind, text) text,
#define CINCH_PUNCT(kind, text) text,
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
};

}  // namespace

std::string_view spelling(TokenKind kind) {
  const auto idx = static_cast<std::size_t>(kind);
  return idx < std::size(kSpellings) ? kSpellings[idx] : std::string_view();
}

TokenKind word_kind(std::string_view word) {
  const auto found = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                  [&](const Spelling& row) { return row.text == word; });
  return found != std::end(kKeywords) ? found->kind : TokenKind::Name;
}

std::string describe(const Token& token) {
  // Cuts longer texts, since a message is one line.
  constexpr std::size_t kMaxShown = 40;
  switch (token.kind) {
    case TokenKind::End:
      return token.text == ";" ? "`;`" : "the end of the line";
    case TokenKind::EndOfFile:
      return "the end of the file";
    case TokenKind::String:
      return "a string";
    default:
      break;
  }
  std::string text(token.text.substr(0, kMaxShown));
  if (token.text.size() > kMaxShown) text += "…";
  return (token.kind <= TokenKind::KwPi ? "the reserved word `" : "`") + text + "`";
}

}  // namespace cinch::dsl
