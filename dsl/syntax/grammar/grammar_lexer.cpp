// The lexer: a Spirit X3 grammar over characters. Each alternative of `lexeme` matches one piece of
// text (blanks, a comment, a word, a number, …), and an action passes it to Lexer, which keeps
// tokens and comments. Invalid pieces have alternatives of their own, so that the lexer always goes
// on.
#include <algorithm>
#include <boost/spirit/home/x3.hpp>
#include <charconv>

#include "dsl/diag/foreign_words.h"
#include "dsl/syntax/token.h"

namespace cinch::dsl {

// NOLINTBEGIN(readability-identifier-naming): rules bear the names of the grammar

namespace {

namespace x3 = boost::spirit::x3;
using Iterator = const char*;

class Lexer {
 public:
  Lexer(const SourceBuffer& source, DiagSink& sink) : source_(source), sink_(sink) {}

  void add(TokenKind kind, std::string_view text, bool is_reported = false) {
    Token token{kind, is_reported, starts_line_, span_of(text), text};
    // A doc comment before a separator belongs to the token after it, because the formatter adds
    // and drops separators.
    const bool is_separator = kind == TokenKind::Semicolon || kind == TokenKind::Comma;
    if (!doc_.empty() && !is_separator) {
      token.doc = static_cast<std::uint32_t>(stream_.docs.size());
      stream_.docs.push_back(std::move(doc_));
      doc_.clear();
    }
    stream_.tokens.push_back(token);
    starts_line_ = false;
  }

  void add_line_end() { starts_line_ = true; }

  void add_line_comment(std::string_view text) {
    while (text.ends_with('\r') || text.ends_with(' ') || text.ends_with('\t'))
      text.remove_suffix(1);
    const bool is_doc = text.starts_with("///") && !text.starts_with("////");
    stream_.comments.push_back(
        {is_doc ? ast::CommentKind::Doc : ast::CommentKind::Line, span_of(text)});
    if (!is_doc) return;
    text.remove_prefix(3);
    if (text.starts_with(' ')) text.remove_prefix(1);
    if (!doc_.empty()) doc_ += '\n';
    doc_ += text;
  }

  void add_block_comment(std::string_view text) {
    stream_.comments.push_back({ast::CommentKind::Block, span_of(text)});
    if (text.find('\n') != std::string_view::npos) starts_line_ = true;
  }

  void add_open_comment(std::string_view text) {
    sink_.report<DiagKind::UnterminatedComment>(span_of(text.substr(0, 2)));
    stream_.comments.push_back({ast::CommentKind::Block, span_of(text)});
  }

  void add_integer(std::string_view text) {
    const bool is_hex = text.starts_with("0x");
    const std::string_view digits = is_hex ? text.substr(2) : text;
    std::uint64_t value = 0;
    const char* begin = digits.data();
    const bool fits =
        std::from_chars(begin, begin + digits.size(), value, is_hex ? 16 : 10).ec == std::errc();
    if (!fits) sink_.report<DiagKind::NumberTooLarge>(span_of(text), text);
    add(fits ? TokenKind::Integer : TokenKind::Invalid, text, !fits);
  }

  void add_float(std::string_view text) {
    double value = 0;
    const auto error = std::from_chars(text.data(), text.data() + text.size(), value).ec;
    // A number too small for a double is 0. Only a number that is too large has no value.
    const bool is_small =
        text.find("e-") != std::string_view::npos || text.find("E-") != std::string_view::npos;
    const bool fits = error == std::errc() || is_small;
    if (!fits) sink_.report<DiagKind::NumberTooLarge>(span_of(text), text);
    add(fits ? TokenKind::Float : TokenKind::Invalid, text, !fits);
  }

  void add_bad_number(std::string_view text) {
    auto& diag = sink_.report<DiagKind::MalformedNumber>(span_of(text), text);
    std::string plain(text);
    std::erase(plain, '_');
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (plain != text && std::ranges::all_of(plain, is_digit))
      diag.note(foreign_note(ForeignPlace::Syntax, "1_000", plain));
    add(TokenKind::Invalid, text, true);
  }

  void add_string(std::string_view text) {
    for (std::size_t i = 1; i + 1 < text.size(); ++i) {
      if (text[i] != '\\') continue;
      if (std::string_view("\\\"nt").find(text[i + 1]) == std::string_view::npos) {
        sink_.report<DiagKind::UnknownEscape>(span_of(text.substr(i, 2)), text.substr(i, 2));
      }
      ++i;
    }
    add(TokenKind::String, text);
  }

  void add_open_string(std::string_view text) {
    sink_.report<DiagKind::UnterminatedString>(span_of(text.substr(0, 1)));
    add(TokenKind::Invalid, text, true);
  }

  void add_unexpected(std::string_view text) {
    auto& diag = sink_.report<DiagKind::UnexpectedCharacter>(span_of(text), shown(text));
    explain_word(diag, ForeignPlace::Syntax, text, span_of(text), "");
    add(TokenKind::Invalid, text, true);
  }

  TokenStream finish() {
    const std::string_view text = source_.text();
    add(TokenKind::EndOfFile, text.substr(text.size()));
    return std::move(stream_);
  }

 private:
  Span span_of(std::string_view text) const {
    const auto begin = static_cast<std::uint32_t>(text.data() - source_.text().data());
    return {source_.id(), begin, begin + static_cast<std::uint32_t>(text.size())};
  }

  // Shows printable ASCII and UTF-8 unchanged, and control characters by number.
  static std::string shown(std::string_view text) {
    const auto first = static_cast<unsigned char>(text.front());
    if (first > 0x20 && first != 0x7f) {
      constexpr std::size_t kMaxShown = 24;
      return "`" + std::string(text.substr(0, kMaxShown)) + "`";
    }
    constexpr char kHex[] = "0123456789abcdef";
    return std::string("with code 0x") + kHex[first >> 4] + kHex[first & 15];
  }

  const SourceBuffer& source_;
  DiagSink& sink_;
  TokenStream stream_;
  std::string doc_;
  bool starts_line_ = true;
};

struct LexerTag;

std::string_view view(const boost::iterator_range<Iterator>& range) {
  return {range.begin(), static_cast<std::size_t>(range.end() - range.begin())};
}

// An action that passes a matched piece to one member of Lexer.
template <void (Lexer::*kMember)(std::string_view)>
constexpr auto give = [](auto& ctx) { (x3::get<LexerTag>(ctx).*kMember)(view(x3::_attr(ctx))); };

constexpr auto give_word = [](auto& ctx) {
  const std::string_view text = view(x3::_attr(ctx));
  x3::get<LexerTag>(ctx).add(word_kind(text), text);
};

constexpr auto give_line_end = [](auto& ctx) { x3::get<LexerTag>(ctx).add_line_end(); };

struct PunctuationTable : x3::symbols<TokenKind> {
  PunctuationTable() {
#define CINCH_KEYWORD(kind, text)
#define CINCH_PUNCT(kind, text) add(text, TokenKind::kind);
#include "dsl/syntax/token.def"
#undef CINCH_KEYWORD
#undef CINCH_PUNCT
  }
};

constexpr auto give_punctuation = [](auto& ctx) {
  const std::string_view text = view(x3::_attr(ctx));
  static const PunctuationTable table;
  const TokenKind* kind = table.find(std::string(text));
  x3::get<LexerTag>(ctx).add(*kind, text);
};

void run_lexer(Iterator first, Iterator last, Lexer& lexer) {
  using x3::char_;
  using x3::lit;
  using x3::raw;
  static const PunctuationTable punctuation;

  const auto digit = char_('0', '9');
  const auto hex_digit = char_('0', '9') | char_('a', 'f') | char_('A', 'F');
  const auto letter = char_('a', 'z') | char_('A', 'Z') | char_('_');
  const auto in_word = letter | digit;
  const auto rest_of_line = *(x3::char_ - '\n');
  const auto exponent = (lit('e') | 'E') >> -(lit('+') | '-') >> +digit;

  const auto blanks = +(lit(' ') | '\t' | '\r') | "\xef\xbb\xbf";
  const auto line_comment = raw[lit("//") >> rest_of_line];
  const auto block_comment = raw[lit("/*") >> *(x3::char_ - "*/") >> "*/"];
  const auto open_comment = raw[lit("/*") >> *x3::char_];
  const auto word = raw[letter >> *in_word];
  const auto integer = raw[(lit("0x") >> +hex_digit) | +digit] >> !in_word;
  const auto decimal = +digit >> ((lit('.') >> +digit >> -exponent) | exponent);
  const auto floating = raw[decimal] >> !in_word;
  const auto bad_number = raw[(decimal | +digit) >> *in_word];
  const auto string_piece =
      (lit('\\') >> (x3::char_ - '\n')) | (x3::char_ - (lit('"') | '\\' | '\n'));
  const auto string = raw[lit('"') >> *string_piece >> '"'];
  const auto open_string = raw[lit('"') >> rest_of_line];
  const auto known = char_(' ') | '\t' | '\r' | '\n' | '"' | in_word | x3::omit[punctuation];
  const auto unexpected = raw[+(x3::char_ - known)];

  const auto lexeme = blanks | lit('\n')[give_line_end] |
                      line_comment[give<&Lexer::add_line_comment>] |
                      block_comment[give<&Lexer::add_block_comment>] |
                      open_comment[give<&Lexer::add_open_comment>] | word[give_word] |
                      floating[give<&Lexer::add_float>] | integer[give<&Lexer::add_integer>] |
                      bad_number[give<&Lexer::add_bad_number>] | string[give<&Lexer::add_string>] |
                      open_string[give<&Lexer::add_open_string>] |
                      raw[punctuation][give_punctuation] | unexpected[give<&Lexer::add_unexpected>];

  x3::parse(first, last, x3::with<LexerTag>(lexer)[*lexeme]);
}

}  // namespace

TokenStream lex(const SourceBuffer& source, DiagSink& sink) {
  Lexer lexer(source, sink);
  const std::string_view text = source.text();
  run_lexer(text.data(), text.data() + text.size(), lexer);
  return lexer.finish();
}

// NOLINTEND(readability-identifier-naming)

}  // namespace cinch::dsl
