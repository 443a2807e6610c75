// Where libraries are looked for; see shared_object.h.
#include "runtime/module/shared_object.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <climits>

#include "runtime/core/environment.h"

namespace cinch::rt {
namespace {

namespace fs = std::filesystem;

// A library that was opened by a relative path lies where the path led at that time.
fs::path file_of_library(link_map* library) {
  std::array<char, PATH_MAX + 1> folder{};
  if (::dlinfo(library, RTLD_DI_ORIGIN, folder.data()) != 0) return library->l_name;
  return fs::path(folder.data()) / fs::path(library->l_name).filename();
}

}  // namespace

fs::path own_folder() {
  Dl_info info{};
  void* found = nullptr;
  const auto* const code = reinterpret_cast<const void*>(&own_folder);
  if (::dladdr1(code, &info, &found, RTLD_DL_LINKMAP) == 0 || found == nullptr) return {};
  auto* const object = static_cast<link_map*>(found);
  std::error_code error;
  // The executable has no name here, and the path by which it was started may lead elsewhere now.
  const bool is_executable = object->l_name == nullptr || object->l_name[0] == '\0';
  const fs::path file = is_executable ? fs::read_symlink("/proc/self/exe", error)
                                      : fs::canonical(file_of_library(object), error);
  return error ? fs::path() : file.parent_path();
}

std::vector<std::string> library_paths(const char* file_name, const char* variable) {
  if (const auto named = environment_variable(variable); !named.empty()) {
    return {std::string(named)};
  }
  std::vector<std::string> paths;
  const fs::path folder = own_folder();
  for (const char* step : {".", "../lib", "../../lib", "../lib/cinch", "cinch"}) {
    if (folder.empty()) break;  // an empty path would mean the working folder
    const fs::path path = folder / step / file_name;
    std::error_code error;
    if (fs::exists(path, error)) paths.push_back(path.lexically_normal().string());
  }
  paths.emplace_back(file_name);
  return paths;
}

Result<OpenedLibrary> open_first_library(const std::vector<std::string>& paths, int flags,
                                         const char* entry, const char* what,
                                         const std::function<const void*(void*)>& accept) {
  std::string tried;
  for (const std::string& path : paths) {
    void* const library = ::dlopen(path.c_str(), flags);
    void* const address = library == nullptr ? nullptr : ::dlsym(library, entry);
    const void* const table = address == nullptr ? nullptr : accept(address);
    if (table != nullptr) return OpenedLibrary{table, path};
    const char* const reason = address == nullptr ? ::dlerror() : nullptr;
    tried += (tried.empty() ? "" : "; ") +
             (reason == nullptr ? path + ": of another version" : std::string(reason));
  }
  return fail(ErrorKind::Unavailable, std::string("no ") + what + ": " + tried);
}

}  // namespace cinch::rt
