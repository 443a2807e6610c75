// Members of structs as text, by their `describe` (runtime/image/describe.h):
//
//   params[0] {name="ratio", dtype=f32, default=0.001, range {low=0, high=1, low_open}}
//
// A list of structs or texts is a line for each element. A flag is its name alone. What is nothing
// (false, an empty list or text, no formula) is left out. A reader takes members in any order.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <optional>
#include <type_traits>

#include "codegen/text/formulas.h"
#include "runtime/core/hash.h"
#include "runtime/image/describe.h"

namespace cinch::text {

/// An instruction's bits, in hexadecimal digits.
struct Hex {
  std::uint64_t& bits;
};
/// A constant of a type, as bits: those of f64 for floats, those of i64 for integers.
struct Constant {
  DType dtype;
  std::uint64_t& bits;
};
/// A word without quotes.
struct Word {
  std::string& text;
};

template <typename T>
struct IsList : std::false_type {};
template <typename T>
struct IsList<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
struct IsId : std::false_type {};
template <typename Tag>
struct IsId<Id<Tag>> : std::true_type {};

template <typename T>
concept Flag = std::same_as<T, bool>;
template <typename T>
concept Optional = IsOptional<T>::value;
/// An element of a list between parentheses.
template <typename T>
concept Short = (std::integral<T> && !Flag<T>) || std::same_as<T, DType>;
template <typename T>
concept List = IsList<T>::value && !Short<typename T::value_type>;
/// Has a `describe`.
template <typename T>
concept Struct =
    std::is_class_v<T> && !Optional<T> && !IsList<T>::value && !std::same_as<T, std::string> &&
    !std::same_as<T, DType> && !std::same_as<T, rt::ArrayType> && !IsId<T>::value &&
    !std::same_as<T, Hex> && !std::same_as<T, Constant> && !std::same_as<T, Word>;

class Writer {
 public:
  static constexpr bool kIsText = true;

  explicit Writer(HostPrinter& host) : host_(host) {}

  /// Is an optional member there? A reader looks for all of them.
  bool has(bool is_there) const { return is_there; }

  template <typename T>
  Writer& operator()(std::string_view name, T&& value) {
    if (!is_nothing(value)) add(std::string(name), value);
    return *this;
  }
  /// A member that may be kNoIndex.
  Writer& index(std::string_view name, std::uint32_t value) {
    return value == rt::kNoIndex ? *this : (*this)(name, value);
  }
  template <typename T>
  Writer& if_any(std::string_view name, T& value) {
    return index_or_member(name, value);
  }

  /// Drops a member that was added.
  void drop(std::string_view name) {
    std::erase_if(parts_,
                  [&](const auto& part) { return part.starts_with(fmt::format("{}=", name)); });
  }
  /// A line for each member.
  std::string lines() const {
    std::string all;
    for (const std::string& part : parts_) all += part + '\n';
    return all;
  }
  /// All members between braces: on one line if none is a list of structs.
  std::string braces() const {
    if (!has_list_) return fmt::format("{{{}}}", fmt::join(parts_, ", "));
    std::string all = "{\n";
    for (const std::string& part : parts_) all += indented(part);
    return all + "}";
  }
  bool is_empty() const { return parts_.empty(); }
  static std::string indented(std::string_view lines) {
    std::string all;
    while (!lines.empty()) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      all += fmt::format("  {}\n", lines.substr(0, end));
      lines.remove_prefix(std::min(end + 1, lines.size()));
    }
    return all;
  }

 private:
  Writer& index_or_member(std::string_view name, std::uint32_t value) { return index(name, value); }
  template <typename T>
  Writer& index_or_member(std::string_view name, T& value) {
    return (*this)(name, value);
  }

  template <typename T>
  static bool is_nothing(const T& value) {
    if constexpr (Flag<T> || Optional<T>) {
      return !value;
    } else if constexpr (IsList<T>::value || std::same_as<T, std::string>) {
      return value.empty();
    } else if constexpr (IsId<T>::value) {
      return !value.is_valid();
    } else if constexpr (Struct<T> && std::equality_comparable<T>) {
      return value == T{};
    } else {
      return false;
    }
  }

  template <typename T>
  void add(const std::string& name, T& value) {
    using Value = std::remove_const_t<T>;
    if constexpr (Flag<Value>) {
      parts_.push_back(name);
    } else if constexpr (Optional<Value>) {
      if (value) add(name, *value);
    } else if constexpr (List<Value>) {
      has_list_ = true;
      for (std::size_t i = 0; i < value.size(); ++i) add(fmt::format("{}[{}]", name, i), value[i]);
    } else if constexpr (Struct<Value>) {
      Writer inner(host_);
      describe(inner, const_cast<Value&>(value));
      // An element of a list is counted even if it holds nothing.
      if (inner.parts_.empty() && !name.ends_with(']')) return;
      parts_.push_back(name + ' ' + inner.braces());
      has_list_ = has_list_ || inner.has_list_;
      // The formula of a size is printed before its name stands for it.
      if constexpr (std::same_as<Value, rt::SizeInfo>) host_.name_size(value);
    } else {
      parts_.push_back(name + '=' + text_of(value));
    }
  }

  static std::string text_of(const std::string& value) { return quote(value); }
  static std::string text_of(double value) { return fmt::format("{}", value); }
  static std::string text_of(DType value) { return dtype_name(value); }
  static std::string text_of(Hex value) { return fmt::format("{:#x}", value.bits); }
  static std::string text_of(Constant value) { return print_value(value.dtype, value.bits); }
  static std::string text_of(Word value) { return value.text; }
  std::string text_of(HostExprId value) const { return host_.print(value); }
  std::string text_of(const rt::ArrayType& value) const { return host_.print(value); }
  template <typename Tag>
  static std::string text_of(Id<Tag> value) {
    return fmt::format("%{}", value.index());
  }
  template <std::integral T>
  static std::string text_of(T value) {
    return fmt::format("{}", value);
  }
  template <typename T>
    requires std::is_enum_v<T>
  static std::string text_of(T value) {
    const auto names = names_of(value);
    const auto index = static_cast<std::size_t>(value);
    return std::string(index < names.size() ? names[index] : "?");
  }
  template <Short T>
  static std::string text_of(const std::vector<T>& values) {
    std::string all;
    for (const T value : values) all += (all.empty() ? "" : ", ") + text_of(value);
    return '(' + all + ')';
  }

  HostPrinter& host_;
  std::vector<std::string> parts_;
  bool has_list_ = false;
};

class Reader {
 public:
  static constexpr bool kIsText = true;

  Reader(Lexer& lexer, HostParser& host) : lexer_(lexer), host_(host) {}

  bool has(bool /*is_there*/) const { return true; }

  template <typename T>
  Reader& operator()(std::string_view name, T&& value) {
    while (lexer_.accept(name)) {
      read_member(value);
      lexer_.accept(",");
    }
    return *this;
  }
  Reader& index(std::string_view name, std::uint32_t& value) { return (*this)(name, value); }
  template <typename T>
  Reader& if_any(std::string_view name, T& value) {
    return (*this)(name, value);
  }

  /// Reads members until the next token names none.
  template <typename T>
  void members(T& value) {
    std::size_t start = 0;
    do {
      start = lexer_.peek().offset;
      describe(*this, value);
    } while (lexer_.peek().offset != start);
  }
  template <typename T>
  void braces(T& value) {
    // Steps hold steps.
    if (++depth_ > kMaxDepth) lexer_.fail("nested too deeply");
    lexer_.expect("{");
    members(value);
    if (!lexer_.is("}")) lexer_.fail("expected a member or '}'");
    lexer_.expect("}");
    --depth_;
  }

 private:
  static constexpr int kMaxDepth = 200;

  template <typename T>
  void read_member(T& value) {
    if constexpr (Flag<T>) {
      value = true;
    } else if constexpr (Optional<T>) {
      read_member(value.emplace());
    } else if constexpr (List<T>) {
      if (lexer_.accept("[")) {
        const bool is_next = lexer_.expect_index("a number") == value.size();
        if (!is_next) lexer_.fail("numbers of a list must ascend from 0");
        lexer_.expect("]");
      }
      read_member(value.emplace_back());
    } else if constexpr (Struct<T>) {
      braces(value);
    } else {
      lexer_.expect("=");
      read(value);
    }
  }

  void read(std::string& value) { value = lexer_.expect_text("a text"); }
  void read(double& value) { value = lexer_.expect_double(); }
  void read(DType& value) { value = host_.parse_dtype(); }
  void read(HostExprId& value) { value = host_.parse_expr(); }
  void read(rt::ArrayType& value) { value = host_.parse_type(); }
  void read(Hex value) { value.bits = lexer_.expect_number("bits"); }
  void read(Constant value) { value.bits = parse_value(lexer_, value.dtype); }
  void read(Word value) {
    const bool is_number = lexer_.peek().kind == TokenKind::Number;
    value.text = is_number ? lexer_.take().text : lexer_.expect_name("a word");
  }
  template <typename Tag>
  void read(Id<Tag>& value) {
    if (lexer_.peek().kind != TokenKind::Value) lexer_.fail("expected a value");
    value = Id<Tag>(lexer_.take().value);
  }
  template <std::unsigned_integral T>
  void read(T& value) {
    value = static_cast<T>(lexer_.expect_number("a number", std::numeric_limits<T>::max()));
  }
  template <typename T>
    requires std::is_enum_v<T>
  void read(T& value) {
    const std::string_view name = lexer_.expect_name("a kind");
    const auto names = names_of(value);
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) lexer_.fail(fmt::format("unknown kind '{}'", name));
    value = static_cast<T>(found - names.begin());
  }
  template <Short T>
  void read(std::vector<T>& values) {
    lexer_.expect("(");
    while (!lexer_.accept(")")) {
      if (!values.empty()) lexer_.expect(",");
      read(values.emplace_back());
    }
  }

  Lexer& lexer_;
  HostParser& host_;
  int depth_ = 0;
};

/// Completes what was read of a program: digests of C++ functions, counts of the wire.
inline void complete(const Lexer& lexer, rt::ProgramInfo& info) {
  for (rt::ExternInfo& function : info.externs) {
    const Hash128 digest = hash128(function.source);
    function.digest = {digest.low, digest.high};
  }
  const std::size_t counts = info.wire.counts.size();
  if (counts > info.counts.size()) lexer.fail("the wire has more counts than the program");
  info.wire.counts.assign(info.counts.begin(), info.counts.begin() + static_cast<int>(counts));
}

}  // namespace cinch::text
