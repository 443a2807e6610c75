// Parser of the text form: program level. Host expressions and steps: text_parser_kernel.cpp.
// Kernels: text_parser_kernel.cpp.
#include <charconv>

#include "codegen/kir/text/text.h"
#include "codegen/kir/text/text_parser.h"
#include "runtime/core/check.h"
#include "runtime/core/hash.h"

namespace cinch::kir {
namespace {

class ProgramParser {
 public:
  explicit ProgramParser(std::string_view text)
      : lexer_(text), exprs_(lexer_, program_.info.exprs) {}

  rt::Result<KernelProgram> parse() {
    lexer_.expect("program");
    program_.info.name = lexer_.expect_string();
    while (!lexer_.failed() && lexer_.peek().kind != TokenKind::End) item();
    if (const auto& error = lexer_.error()) return rt::fail(rt::ErrorKind::InvalidArgument, *error);
    return std::move(program_);
  }

 private:
  void item() {
    const std::string word = lexer_.expect_word("an item");
    if (fact(word) || table(word)) return;
    if (word == "kernel") {
      program_.kernels.push_back(KernelParser(lexer_, program_).parse());
    } else if (word == "entry") {
      entry();
    } else if (word == "step") {
      step_touch();
    } else if (word == "result") {
      result();
    } else {
      lexer_.fail("unknown item '" + word + "'");
    }
  }

  bool fact(const std::string& word) {
    rt::ProgramInfo& info = program_.info;
    if (word == "param") {
      std::string name = lexer_.expect_string();
      info.params.push_back({.name = std::move(name), .dtype = parse_dtype_word(lexer_)});
    } else if (word == "count") {
      info.counts.push_back(count());
    } else if (word == "wire_count") {
      info.wire.counts.push_back(count());
    } else if (word == "state") {
      std::string name = lexer_.expect_string();
      info.states.push_back({std::move(name), array()});
    } else if (word == "extern") {
      info.externs.push_back(extern_function());
    } else if (word == "field") {
      field();
    } else {
      return false;
    }
    return true;
  }

  bool table(const std::string& word) {
    if (word == "size") {
      expect_index(program_.size_exprs.size());
      program_.size_exprs.push_back(exprs_.parse());
    } else if (word == "message") {
      expect_index(program_.messages.size());
      program_.messages.push_back(lexer_.expect_string());
    } else if (word == "constant") {
      expect_index(program_.constants.size());
      program_.constants.push_back(bytes(lexer_.expect_string()));
    } else if (word == "buffer") {
      buffer();
    } else {
      return false;
    }
    return true;
  }

  void expect_index(std::size_t index) {
    if (lexer_.expect_number() != index) lexer_.fail("numbers of a table must ascend from 0");
    lexer_.expect('=');
  }

  std::vector<std::uint8_t> bytes(const std::string& hex) {
    std::vector<std::uint8_t> out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      const auto byte = parse_number("0x" + hex.substr(i, 2));
      if (!byte) lexer_.fail("a constant is a string of hexadecimal bytes");
      out.push_back(static_cast<std::uint8_t>(byte.value_or(0)));
    }
    if (hex.size() % 2) lexer_.fail("a constant has two digits per byte");
    return out;
  }

  rt::ExternInfo extern_function() {
    rt::ExternInfo function;
    function.name = lexer_.expect_string();
    lexer_.expect('(');
    while (!lexer_.failed() && !lexer_.accept(')')) {
      if (!function.params.empty()) lexer_.expect(',');
      function.params.push_back(parse_dtype_word(lexer_));
    }
    function.result = parse_dtype_word(lexer_);
    lexer_.expect("work");
    lexer_.expect('=');
    function.work = lexer_.expect_number();
    function.source = lexer_.expect_string();
    const Hash128 digest = hash128(function.source);
    function.digest = {digest.low, digest.high};
    return function;
  }

  rt::CountInfo count() {
    std::string name = lexer_.expect_string();
    return {std::move(name), exprs_.parse()};
  }

  rt::ArrayType array() {
    rt::ArrayType type{.dtype = parse_dtype_word(lexer_)};
    lexer_.expect('[');
    while (!lexer_.failed() && !lexer_.accept(']')) {
      if (type.rank == 2) return lexer_.fail("at most two dimensions"), type;
      type.dims[type.rank++] = exprs_.parse();
      lexer_.accept(',');
    }
    return type;
  }

  void field() {
    rt::FieldInfo field{.name = lexer_.expect_string()};
    field.type = array();
    if (lexer_.accept("by")) {
      lexer_.expect('=');
      field.sum = static_cast<rt::FieldSum>(expect_name(lexer_, kFieldSumNames));
    }
    field.ascending = lexer_.accept("ascending");
    if (lexer_.accept("limit")) {
      lexer_.expect('=');
      field.index_limit = exprs_.parse();
    }
    if (lexer_.accept("packs")) {
      lexer_.expect('=');
      field.packing = lexer_.expect_string();
    }
    program_.info.wire.fields.push_back(std::move(field));
  }

  void key(std::string_view name) {
    lexer_.expect(name);
    lexer_.expect('=');
  }

  void buffer() {
    lexer_.expect('@');
    if (lexer_.expect_number() != program_.buffers.size()) {
      lexer_.fail("numbers of buffers must ascend from 0");
    }
    rt::BufferInfo buffer{.name = lexer_.expect_string()};
    buffer.dtype = parse_dtype_word(lexer_);
    key("bits");
    buffer.storage_bits = static_cast<std::uint8_t>(lexer_.expect_number(64));
    key("role");
    buffer.role = static_cast<rt::BufferRole>(expect_name(lexer_, kRoleNames));
    key("index");
    buffer.role_index = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
    key("elems");
    buffer.num_elems = exprs_.parse();
    key("bytes");
    buffer.size_bytes = exprs_.parse();
    program_.buffers.push_back(std::move(buffer));
  }

  void entry() {
    rt::Entry& entry = program_.entries[expect_name(lexer_, kEntryNames)];
    entry.present = true;
    while (lexer_.accept('@')) {
      entry.buffers.push_back(static_cast<rt::BufferIndex>(lexer_.expect_number(UINT32_MAX)));
    }
    if (lexer_.accept("commits")) {
      entry.commit_step = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
    }
    entry.steps = StepParser(lexer_, program_.info.exprs).block();
  }

  void step_touch() {
    StepTouch touch{parse_buffer(lexer_), parse_buffer(lexer_)};
    for (Version* version : {&touch.first, &touch.second, &touch.made})
      *version = static_cast<Version>(lexer_.expect_number(UINT32_MAX));
    program_.step_touches.push_back(touch);
  }

  void result() {
    auto& results = program_.results[expect_name(lexer_, kEntryNames)];
    results.push_back(parse_touch(lexer_));
  }

  KernelProgram program_;
  Lexer lexer_;
  HostExprParser exprs_;
};

}  // namespace

rt::Result<KernelProgram> parse(std::string_view text) {
  try {
    return ProgramParser(text).parse();
  } catch (const InternalError& error) {
    // The pool rejects arguments of the wrong type. Here, that is an error of the text.
    return rt::fail(rt::ErrorKind::InvalidArgument, error.message());
  }
}

namespace {
bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}
}  // namespace

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '/' && text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r') {
      line_ += c == '\n';
      ++at_;
    } else {
      return;
    }
  }
}

void Lexer::lex_string() {
  ++at_;
  token_.kind = TokenKind::String;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
      ++at_;
      token_.text += text_[at_] == 'n' ? '\n' : text_[at_];
    } else {
      token_.text += text_[at_];
    }
    ++at_;
  }
  if (at_ >= text_.size() || text_[at_] != '"') return fail("a string without an end");
  ++at_;
}

void Lexer::next() {
  skip_blanks();
  token_ = {TokenKind::End, {}, line_};
  if (failed() || at_ >= text_.size()) return;
  if (text_[at_] == '"') return lex_string();
  const std::size_t begin = at_;
  if (!is_word_char(text_[at_])) {
    ++at_;
    token_.kind = TokenKind::Mark;
  } else {
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    token_.kind = TokenKind::Word;
  }
  token_.text = text_.substr(begin, at_ - begin);
}

Token Lexer::take() {
  Token token = std::move(token_);
  next();
  return token;
}

bool Lexer::accept(char mark) {
  if (!is_mark(mark)) return false;
  next();
  return true;
}

bool Lexer::accept(std::string_view word) {
  if (!is_word(word)) return false;
  next();
  return true;
}

void Lexer::expect(char mark) {
  if (!accept(mark)) fail(std::string("expected '") + mark + "', found '" + token_.text + "'");
}

void Lexer::expect(std::string_view word) {
  if (!accept(word)) fail("expected " + std::string(word) + ", found '" + token_.text + "'");
}

std::string Lexer::expect_word(std::string_view what) {
  if (token_.kind == TokenKind::Word) return take().text;
  fail("expected " + std::string(what) + ", found '" + token_.text + "'");
  return {};
}

std::string Lexer::expect_string() {
  if (token_.kind == TokenKind::String) return take().text;
  fail("expected a string, found '" + token_.text + "'");
  return {};
}

std::uint64_t Lexer::expect_number(std::uint64_t max) {
  const std::string word = expect_word("a number");
  const std::optional<std::uint64_t> value = parse_number(word);
  if (!value || *value > max) {
    fail("expected a number up to " + std::to_string(max) + ", found '" + word + "'");
    return 0;
  }
  return *value;
}

void Lexer::fail(std::string message) {
  if (!failed()) error_ = "line " + std::to_string(token_.line) + ": " + std::move(message);
  token_ = {TokenKind::End, {}, line_};
  at_ = text_.size();
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace cinch::kir
