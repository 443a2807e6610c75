// The texts of a library: names of its symbols, its tables as C++, and the files that programs
// read.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "codegen/aot/library.h"
#include "runtime/c_api/cinch_library.h"
#include "runtime/core/params.h"

namespace cinch::codegen {
namespace {

// Text for a C comment: nothing in it ends or begins a comment, or is a trigraph.
std::string in_comment(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const char last = safe.empty() ? ' ' : safe.back();
    const bool joins =
        (last == '*' && c == '/') || (last == '/' && c == '*') || (last == '?' && c == '?');
    if (joins) safe += ' ';
    safe += c == '\r' ? ' ' : c;
  }
  return safe;
}

std::string comment_of(const rt::ProgramInfo& info) {
  std::string text;
  const auto line = [&](const std::string& words) { text += "\n * " + in_comment(words); };
  std::string doc = info.doc;
  for (std::size_t end = doc.find('\n'); end != std::string::npos; end = doc.find('\n')) {
    line(doc.substr(0, end));
    doc.erase(0, end + 1);
  }
  if (!doc.empty()) line(doc);
  for (const rt::ParamInfo& p : info.params) {
    const std::string range = p.range ? " in " + rt::range_text(p.dtype, *p.range) : "";
    if (p.is_input) {
      line(fmt::format("Input {}: {}{}", p.name, dtype_name(p.dtype), range));
      continue;
    }
    line(fmt::format("Parameter {}: {} = {}{}", p.name, dtype_name(p.dtype), p.default_value,
                     range));
  }
  for (const rt::StateInfo& s : info.states)
    line(
        fmt::format("{} {}: {}", s.is_input ? "Input" : "State", s.name, dtype_name(s.type.dtype)));
  if (text.empty()) line(info.name);
  return "/*" + text.substr(3) + " */\n";
}

std::string c_header(const LibraryText& library) {
  const std::string guard = "CINCH_LIBRARY_OF_" + library.name;
  std::string text = fmt::format(
      "/* Compressors of lib{0}, compiled by Cinch {1}. C11 and C++20.\n *\n"
      " *   cinch_program_open(&{2}, NULL, &program, &error);\n *\n"
      " * makes a program of one, as cinch_program_compile would; sessions of it are those of "
      "cinch.h. "
      "*/\n#ifndef {3}\n#define {3}\n\n#include <cinch_library.h>\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      library.name, library.version, table_symbol(library.name, library.compressors[0].name),
      guard);
  for (const auto& each : library.compressors) {
    text += comment_of(*each.info);
    text +=
        fmt::format("extern const cinch_compressor {};\n\n", table_symbol(library.name, each.name));
  }
  text += fmt::format(
      "/* All of them. */\nextern const cinch_library {};\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
      library_symbol(library.name));
  return text;
}

std::string cpp_header(const LibraryText& library) {
  std::string text = fmt::format(
      "// Compressors of lib{0}, compiled by Cinch {1}: C++20, over cinch.hpp.\n"
      "//\n//   cinch::Session session({0}::{2}(), {{gradient.size()}});\n"
      "#pragma once\n#include <cinch.hpp>\n\n#include \"{0}.h\"\n\nnamespace {0} {{\n\n",
      library.name, library.version, library.compressors[0].name);
  for (const auto& each : library.compressors) {
    text += fmt::format(
        "/// Code for this machine, or for a GPU where `choice` asks for it. Throws cinch::Error.\n"
        "inline cinch::Program {}(cinch_choice choice = CINCH_CPU_CODE, int device_number = 0) {{\n"
        "  return cinch::Program::open({}, choice, device_number);\n}}\n\n",
        each.name, table_symbol(library.name, each.name));
  }
  return text + "}  // namespace " + library.name + "\n";
}

std::string cmake_package(const LibraryText& library) {
  return fmt::format(R"(# lib{0}, compiled by Cinch {1}: targets {0}::{0} (shared) and {0}::static.
include(CMakeFindDependencyMacro)
find_dependency(Cinch)
foreach(kind shared static)
  set(target {0}::{0})
  set(file lib{0}.so)
  if(kind STREQUAL "static")
    set(target {0}::static)
    set(file lib{0}.a)
  endif()
  if(NOT TARGET ${{target}})
    string(TOUPPER ${{kind}} type)
    add_library(${{target}} ${{type}} IMPORTED)
    set_target_properties(${{target}} PROPERTIES
      IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/${{file}}"
      INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}"
      INTERFACE_LINK_LIBRARIES Cinch::cinch)
    if(kind STREQUAL "shared")
      set_target_properties(${{target}} PROPERTIES IMPORTED_SONAME ${{file}})
    endif()
  endif()
endforeach()
)",
                     library.name, library.version);
}

NamedBytes file(const std::string& name, const std::string& text) {
  return {name, {text.begin(), text.end()}};
}

}  // namespace

std::vector<NamedBytes> make_headers(const LibraryText& library) {
  return {
      file(library.name + ".h", c_header(library)),
      file(library.name + ".hpp", cpp_header(library)),
      file(library.name + "Config.cmake", cmake_package(library)),
      file(library.name + ".pc",
           fmt::format(
               "prefix=${{pcfiledir}}\n\nName: {0}\nDescription: gradient compressors, compiled by "
               "Cinch\n"
               "Version: {1}\nRequires: cinch\nCflags: -I${{prefix}}\nLibs: -L${{prefix}} -l{0}\n",
               library.name, library.version))};
}

namespace {

// Mirrors cinch_library.h; layout_checks compares.
constexpr const char* kTypes = R"(using u64 = unsigned long;
using u32 = unsigned;
using Kernel = void (*)(const void*, u64, u64);
struct CpuCode { const char* level; const Kernel* kernels; u64 num_kernels; };
struct GpuCode { const char* arch; int is_ptx; const unsigned char* image; u64 image_size; };
struct Compressor {
  u32 library_version, struct_size;
  const char* name;
  const unsigned char* image;
  u64 image_size;
  const CpuCode* cpu;
  u64 num_cpu;
  const GpuCode* gpu;
  u64 num_gpu;
};
struct Library {
  u32 library_version, struct_size;
  const char* name;
  const char* made_by;
  const Compressor* const* compressors;
  u64 num_compressors;
};
)";

void layout_checks(std::string& text) {
  const auto check = [&](const char* type, const char* member, std::size_t offset) {
    text += fmt::format("static_assert(__builtin_offsetof({}, {}) == {});\n", type, member, offset);
  };
  check("CpuCode", "num_kernels", offsetof(cinch_cpu_code, num_kernels));
  check("GpuCode", "is_ptx", offsetof(cinch_gpu_code, is_ptx));
  check("GpuCode", "image_size", offsetof(cinch_gpu_code, image_size));
  check("Compressor", "name", offsetof(cinch_compressor, name));
  check("Compressor", "image", offsetof(cinch_compressor, image));
  check("Compressor", "cpu", offsetof(cinch_compressor, cpu));
  check("Compressor", "gpu", offsetof(cinch_compressor, gpu));
  check("Compressor", "num_gpu", offsetof(cinch_compressor, num_gpu));
  check("Library", "name", offsetof(cinch_library, name));
  check("Library", "num_compressors", offsetof(cinch_library, num_compressors));
  text += fmt::format("static_assert(sizeof(Compressor) == {} && sizeof(Library) == {});\n",
                      sizeof(cinch_compressor), sizeof(cinch_library));
}

void declarations(std::string& text, const CompressorTables& of) {
  const auto image = [&](const std::string& symbol) {
    text += fmt::format("extern const unsigned char {}[];\n", symbol);
  };
  image(of.image_symbol);
  for (const GpuTable& gpu : of.gpu) image(gpu.image_symbol);
  for (const CpuTable& cpu : of.cpu) {
    for (const std::string& kernel : cpu.kernels)
      text += fmt::format("void {}(const void*, u64, u64);\n", kernel);
  }
}

// An array, or null if it is empty.
std::string array(std::string& text, const std::string& type, const std::string& name,
                  const std::vector<std::string>& items) {
  if (items.empty()) return "nullptr";
  text += fmt::format("static const {} {}[] = {{", type, name);
  for (const std::string& item : items) text += "\n  " + item + ",";
  text += "\n};\n";
  return name;
}

void compressor(std::string& text, const std::string& library, const CompressorTables& of) {
  std::vector<std::string> cpu, gpu;
  for (std::size_t i = 0; i < of.cpu.size(); ++i) {
    const std::string kernels =
        array(text, "Kernel", fmt::format("{}_kernels_{}", of.name, i), of.cpu[i].kernels);
    cpu.push_back(
        fmt::format("{{\"{}\", {}, {}}}", of.cpu[i].level, kernels, of.cpu[i].kernels.size()));
  }
  for (const GpuTable& each : of.gpu) {
    gpu.push_back(fmt::format("{{\"{}\", {}, {}, {}}}", each.arch, each.is_ptx ? 1 : 0,
                              each.image_symbol, each.image_size));
  }
  const std::string cpu_array = array(text, "CpuCode", of.name + "_cpu", cpu);
  const std::string gpu_array = array(text, "GpuCode", of.name + "_gpu", gpu);
  text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) const Compressor {} = {{\n"
      "  {}, sizeof(Compressor), \"{}\", {}, {}, {}, {}, {}, {}}};\n",
      table_symbol(library, of.name), CINCH_LIBRARY_VERSION, of.name, of.image_symbol,
      of.image_size, cpu_array, cpu.size(), gpu_array, gpu.size());
}

}  // namespace

std::string tables_text(const std::string& library, const std::string& made_by,
                        const std::vector<CompressorTables>& compressors) {
  std::string text = kTypes;
  layout_checks(text);
  text += "extern \"C\" {\n";
  for (const CompressorTables& each : compressors) declarations(text, each);
  text += "}\n";
  std::vector<std::string> tables;
  for (const CompressorTables& each : compressors) {
    compressor(text, library, each);
    tables.push_back("&" + table_symbol(library, each.name));
  }
  const std::string list = array(text, "Compressor* const", "all", tables);
  text += fmt::format(
      "extern \"C\" __attribute__((visibility(\"default\"))) const Library {} = {{\n"
      "  {}, sizeof(Library), \"{}\", \"{}\", {}, {}}};\n",
      library_symbol(library), CINCH_LIBRARY_VERSION, library, made_by, list, tables.size());
  return text;
}

std::string shared_part_text(const std::string& library) {
  return fmt::format(R"(extern "C" {{
extern const int {0};
__attribute__((visibility("default"))) const void* {1}() {{ return &{0}; }}
__attribute__((no_builtin)) void* memset(void* to, int value, unsigned long size) {{
  auto* bytes = static_cast<unsigned char*>(to);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = (unsigned char)value;
  return to;
}}
__attribute__((no_builtin)) void* memcpy(void* to, const void* from, unsigned long size) {{
  auto* bytes = static_cast<unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  for (unsigned long i = 0; i < size; ++i) bytes[i] = source[i];
  return to;
}}
}}
)",
                     library_symbol(library), kFindSymbol);
}

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

}  // namespace

std::string why_no_name(std::string_view text) {
  const bool is_identifier =
      !text.empty() && is_letter(text[0]) &&
      std::ranges::all_of(text, [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
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
