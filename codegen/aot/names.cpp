#include "codegen/aot/texts.h"

#include <algorithm>
#include <array>

namespace cinch::codegen {
namespace {

// Keywords of C11 and C++20.
constexpr std::array<std::string_view, 104> kWords = {"_Alignas",
                                                      "_Alignof",
                                                      "_Atomic",
                                                      "_Bool",
                                                      "_Complex",
                                                      "_Generic",
                                                      "_Imaginary",
                                                      "_Noreturn",
                                                      "_Static_assert",
                                                      "_Thread_local",
                                                      "alignas",
                                                      "alignof",
                                                      "and",
                                                      "and_eq",
                                                      "asm",
                                                      "auto",
                                                      "bitand",
                                                      "bitor",
                                                      "bool",
                                                      "break",
                                                      "case",
                                                      "catch",
                                                      "char",
                                                      "char16_t",
                                                      "char32_t",
                                                      "char8_t",
                                                      "class",
                                                      "co_await",
                                                      "co_return",
                                                      "co_yield",
                                                      "compl",
                                                      "concept",
                                                      "const",
                                                      "const_cast",
                                                      "consteval",
                                                      "constexpr",
                                                      "constinit",
                                                      "continue",
                                                      "decltype",
                                                      "default",
                                                      "delete",
                                                      "do",
                                                      "double",
                                                      "dynamic_cast",
                                                      "else",
                                                      "enum",
                                                      "explicit",
                                                      "export",
                                                      "extern",
                                                      "false",
                                                      "float",
                                                      "for",
                                                      "friend",
                                                      "goto",
                                                      "if",
                                                      "inline",
                                                      "int",
                                                      "long",
                                                      "mutable",
                                                      "namespace",
                                                      "new",
                                                      "noexcept",
                                                      "not",
                                                      "not_eq",
                                                      "nullptr",
                                                      "operator",
                                                      "or",
                                                      "or_eq",
                                                      "private",
                                                      "protected",
                                                      "public",
                                                      "register",
                                                      "reinterpret_cast",
                                                      "requires",
                                                      "restrict",
                                                      "return",
                                                      "short",
                                                      "signed",
                                                      "sizeof",
                                                      "static",
                                                      "static_assert",
                                                      "static_cast",
                                                      "struct",
                                                      "switch",
                                                      "template",
                                                      "this",
                                                      "thread_local",
                                                      "throw",
                                                      "true",
                                                      "try",
                                                      "typedef",
                                                      "typeid",
                                                      "typename",
                                                      "union",
                                                      "unsigned",
                                                      "using",
                                                      "virtual",
                                                      "void",
                                                      "volatile",
                                                      "wchar_t",
                                                      "while",
                                                      "xor",
                                                      "xor_eq",
                                                      "std"};

// Macros of gcc and Clang, or of headers that everybody includes.
constexpr std::array<std::string_view, 9> kMacros = {"NULL",   "EOF",    "errno", "stdin", "stdout",
                                                     "stderr", "assert", "linux", "unix"};

// System files that NAME.h or libNAME.so would hide.
constexpr std::array<std::string_view, 37> kSystemFiles = {
    "complex", "ctype",  "fenv",        "inttypes", "iso646",    "limits",  "locale",  "math",
    "setjmp",  "signal", "stdalign",    "stdarg",   "stdatomic", "stdbool", "stddef",  "stdint",
    "stdio",   "stdlib", "stdnoreturn", "string",   "tgmath",    "threads", "time",    "uchar",
    "wchar",   "wctype", "c",           "m",        "dl",        "rt",      "pthread", "gcc_s",
    "resolv",  "util",   "unistd",      "tbb",      "memory"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

std::string why_no_name(std::string_view text) {
  const bool is_identifier =
      !text.empty() && is_letter(text[0]) &&
      std::ranges::all_of(text, [](char c) { return is_letter(c) || is_digit(c); });
  if (!is_identifier) return "it is not an identifier of C: letters, digits and _";
  if (std::ranges::find(kWords, text) != kWords.end()) return "it is a word of C or C++";
  if (std::ranges::find(kMacros, text) != kMacros.end()) return "it is a macro of C";
  if (text == "library") return "that is the name of the table of all compressors";
  return {};
}

std::string why_no_library_name(std::string_view text) {
  std::string why = why_no_name(text);
  if (!why.empty()) return why;
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (small.starts_with("cinch")) return "names that begin so are Cinch's own";
  if (std::ranges::find(kSystemFiles, text) != kSystemFiles.end())
    return "a header or library of the system has that name";
  return {};
}

std::string table_symbol(std::string_view library, std::string_view compressor) {
  return std::string(library) + "_" + std::string(compressor);
}

std::string library_symbol(std::string_view library) {
  return std::string(library) + "_library";
}

// A digit, with which no compressor's name begins, and the name's length, since one name may begin
// with another.
std::string own_symbol(std::string_view library, std::string_view what,
                       std::string_view compressor) {
  std::string symbol = std::string(library) + "_0" + std::string(what) + "_" +
                       std::to_string(compressor.size()) + std::string(compressor);
  std::ranges::replace(symbol, '-', '_');
  return symbol;
}

std::string kernel_prefix(std::string_view library, std::string_view compressor,
                          std::string_view arch) {
  return own_symbol(library, arch, compressor) + "_";
}

}  // namespace cinch::codegen
