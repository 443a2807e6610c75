// Bodies of library_path.h.
#include "runtime/module/library_path.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace cinch::rt {
namespace {

// Where the code of this function was loaded from: an executable or a shared library.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&library_paths), &info) == 0 ||
      info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  auto path = std::filesystem::canonical(info.dli_fname, error);
  if (error) path = std::filesystem::read_symlink("/proc/self/exe", error);
  return path.parent_path();
}

}  // namespace

std::vector<std::string> library_paths(const char* file_name, const char* variable) {
  if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> paths;
  const std::filesystem::path folder = own_folder();
  for (const char* step : {".", "../lib", "../../lib", "../lib/cinch"}) {
    if (folder.empty()) break;  // else it would be the working folder
    const auto path = folder / step / file_name;
    std::error_code error;
    if (std::filesystem::exists(path, error)) paths.push_back(path.lexically_normal().string());
  }
  paths.emplace_back(file_name);
  return paths;
}

}  // namespace cinch::rt
