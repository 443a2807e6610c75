// Finding programs, the standard library and imports; see front_end.h.
#include "compiler/service/front_end.h"

#include <algorithm>
#include <filesystem>

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/log.h"
#include "runtime/core/mapped.h"
#include "runtime/module/shared_object.h"

namespace cinch::service {

namespace fs = std::filesystem;

namespace {

// Levels from build/<preset>/bin to the root of the source tree; from lib/cinch of an installed
// tree to its prefix it is one less.
constexpr int kLevelsToRoot = 4;

struct Place {
  std::string path, compressor;
};

bool is_source(const fs::path& path) {
  return path.extension() == ".cinch";
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

Place find_in_stdlib(const std::string& name) {
  std::vector<std::string> names;
  for (const StdlibFile& file : stdlib_files()) {
    names.push_back(fs::path(file.path).stem());
    if (names.back() == name) return {file.path, name};
  }
  std::string message =
      "no program '" + name + "': there is no such file, and the standard library has none";
  if (names.empty()) message += " (the library was not found: set CINCH_STDLIB)";
  // `std.sparsify.topk` is how an import says it.
  const std::string last = name.substr(name.rfind('.') + 1);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const bool is_import = last != name && std::ranges::find(names, last) != names.end();
  const std::string file = name + ".cinch";
  const std::string_view near = is_file(file) ? file
                                : is_import   ? last
                                              : dsl::nearest_name(name, candidates);
  if (!near.empty()) message += "; did you mean '" + std::string(near) + "'?";
  throw ServiceError(Fault::Request, message);
}

std::vector<sema::LoadedText> load_all(std::vector<fs::path> paths) {
  std::sort(paths.begin(), paths.end());
  return mapped<sema::LoadedText>(paths, [&](const fs::path& path) {
    return sema::LoadedText{path.string(), value_or_throw(rt::read_text_file(path))};
  });
}

std::vector<sema::LoadedText> load_from_stdlib(const std::vector<std::string>& path) {
  std::vector<fs::path> found;
  for (const StdlibFile& file : stdlib_files()) {
    const std::string name = fs::path(file.path).stem();
    const bool is_family = path.size() == 1 && (path[0] == file.family || path[0] == name);
    const bool is_member = path.size() == 2 && path[0] == file.family && path[1] == name;
    if (is_family || is_member) found.emplace_back(file.path);
  }
  return load_all(std::move(found));
}

// Is it a path, and no name of the standard library?
bool is_path(const std::string& program) {
  return is_file(program) || program.find('/') != std::string::npos || is_source(program);
}

Place find_file(const std::string& program) {
  if (is_file(program)) return {program, ""};
  const std::size_t colon = program.rfind(':');
  if (colon != std::string::npos) {
    const std::string path = program.substr(0, colon), name = program.substr(colon + 1);
    if (is_path(path)) return {path, name};
    return {find_in_stdlib(path).path, name};
  }
  if (is_path(program)) return {program, ""};
  return find_in_stdlib(program);
}

// Accepts only name(arguments) with nothing after it, which would be other text of a program.
void check_expression(const std::string& expression) {
  int depth = 0;
  bool is_whole = expression.back() == ')';
  for (std::size_t i = 0; i < expression.size() && is_whole; ++i) {
    const char c = expression[i];
    if (c == '(') ++depth;
    if (c == ')') --depth;
    const bool is_over = depth == 0 && c == ')' && i + 1 < expression.size();
    const bool is_text = static_cast<unsigned char>(c) >= ' ' &&
                         std::string_view(";{}/\"").find(c) == std::string_view::npos;
    is_whole = is_text && depth >= 0 && !is_over;
  }
  if (is_whole && depth == 0 && expression.front() != '(') return;
  throw ServiceError(Fault::Request, "'" + expression +
                                         "' is not a file, and not a composition of programs of "
                                         "the standard library: name(arguments)");
}

// Names the compressor after its expression: topk_ratio_0_01.
std::string name_of(const std::string& expression) {
  std::string name;
  for (const char c : expression) {
    const bool is_kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9' && !name.empty());
    if (is_kept) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  // Without arguments it would have the name of the compressor that it calls.
  if (expression.starts_with(name + '(')) name += "_with_defaults";
  return name.empty() ? "composed" : name;
}

// The whole standard library is imported.
ProgramText text_of(const std::string& expression, const rt::HeaderSearch& headers) {
  check_expression(expression);
  std::vector<std::string> families;
  for (const StdlibFile& file : stdlib_files()) {
    if (families.empty() || families.back() != file.family) families.push_back(file.family);
  }
  // The expression is in the first line, since messages show its place.
  const std::string name = name_of(expression);
  std::string text = "compressor " + name + " = " + expression + "\n";
  for (const std::string& family : families) text += "import std." + family + "\n";
  return {expression, name, std::move(text), headers};
}

}  // namespace

ProgramText find_program(const ProgramRequest& request) {
  if (!request.text && request.program.find('(') != std::string::npos &&
      !is_path(request.program)) {
    return text_of(request.program, request.headers);
  }
  if (!request.text) {
    const Place place = find_file(request.program);
    return {place.path, place.compressor, value_or_throw(rt::read_text_file(place.path)),
            request.headers};
  }
  const std::size_t colon = request.program.rfind(':');
  if (colon == std::string::npos) return {request.program, "", *request.text, request.headers};
  return {request.program.substr(0, colon), request.program.substr(colon + 1), *request.text,
          request.headers};
}

std::string stdlib_folder() {
  const std::string_view given = rt::environment_variable("CINCH_STDLIB");
  if (!given.empty()) return std::string(given);
  fs::path folder = rt::own_folder();
  if (folder.empty()) return "";
  for (int level = 0; level < kLevelsToRoot; ++level) {
    for (const char* inside : {"share/cinch/stdlib", "stdlib"}) {
      std::error_code error;
      if (fs::is_directory(folder / inside, error)) return folder / inside;
    }
    folder = folder.parent_path();
  }
  return "";
}

bool is_part(const StdlibFile& file) {
  return file.family == "parts";
}

std::vector<StdlibFile> stdlib_files() {
  std::vector<StdlibFile> files;
  const std::string folder = stdlib_folder();
  if (folder.empty()) return files;
  std::error_code error;
  for (fs::recursive_directory_iterator next(folder, error), end; !error && next != end;
       next.increment(error)) {
    const fs::path& path = next->path();
    if (!is_source(path) || !is_file(path)) continue;
    files.push_back({path.parent_path().filename(), path});
  }
  if (error) {
    const bool is_shortage = error == std::errc::too_many_files_open ||
                             error == std::errc::too_many_files_open_in_system ||
                             error == std::errc::not_enough_memory;
    throw ServiceError(is_shortage ? Fault::Unavailable : Fault::File,
                       "cannot read '" + folder + "': " + error.message());
  }
  std::sort(files.begin(), files.end(), [](const StdlibFile& a, const StdlibFile& b) {
    return std::tie(a.family, a.path) < std::tie(b.family, b.path);
  });
  return files;
}

static fs::path path_of(const sema::ImportRequest& request) {
  return (fs::path(request.from).parent_path() / request.file).lexically_normal();
}

std::vector<sema::LoadedText> load_import(const sema::ImportRequest& request) {
  if (!request.std_path.empty()) return load_from_stdlib(request.std_path);
  const fs::path path = path_of(request);
  return is_file(path) ? load_all({path}) : std::vector<sema::LoadedText>();
}

rt::Status check_import(const sema::ImportRequest& request, const std::string& confine) {
  if (!request.std_path.empty() || rt::lies_below(path_of(request), confine)) return rt::Ok{};
  return rt::fail(rt::ErrorKind::InvalidArgument, rt::confined_text(confine));
}

sema::Loader import_loader(const std::string& confine) {
  return [confine](const sema::ImportRequest& request) {
    return check_import(request, confine).map([&](rt::Ok) { return load_import(request); });
  };
}

}  // namespace cinch::service
