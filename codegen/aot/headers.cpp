#include "codegen/aot/texts.h"

#include <fmt/format.h>

#include <algorithm>

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
    line(fmt::format("Parameter {}: {} = {}{}", p.name, dtype_name(p.dtype), p.default_value,
                     range));
  }
  for (const rt::StateInfo& s : info.states)
    line(fmt::format("State {}: {}", s.name, dtype_name(s.type.dtype)));
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

std::string pkg_config(const LibraryText& library) {
  return fmt::format(
      "prefix=${{pcfiledir}}\n\nName: {0}\nDescription: gradient compressors, compiled by Cinch\n"
      "Version: {1}\nRequires: cinch\nCflags: -I${{prefix}}\nLibs: -L${{prefix}} -l{0}\n",
      library.name, library.version);
}

NamedBytes file(const std::string& name, const std::string& text) {
  return {name, {text.begin(), text.end()}};
}

}  // namespace

std::vector<NamedBytes> make_headers(const LibraryText& library) {
  return {file(library.name + ".h", c_header(library)),
          file(library.name + ".hpp", cpp_header(library)),
          file(library.name + "Config.cmake", cmake_package(library)),
          file(library.name + ".pc", pkg_config(library))};
}

}  // namespace cinch::codegen
