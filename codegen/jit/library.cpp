// Places: CINCH_CLANG_LIBRARY, the folder of the running binary's code, its ../lib, its ../../lib,
// then the loader's own search.
#include "codegen/jit/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace cinch::codegen {
namespace {

constexpr const char* kFileName = "libcinch_clang.so";

// Where the code of this function was loaded from: an executable or a shared library.
std::filesystem::path own_folder() {
  Dl_info info{};
  if (!::dladdr(reinterpret_cast<const void*>(&clang_backend), &info) || !info.dli_fname) return {};
  std::error_code error;
  auto path = std::filesystem::canonical(info.dli_fname, error);
  if (error) path = std::filesystem::read_symlink("/proc/self/exe", error);
  return path.parent_path();
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  if (const char* given = std::getenv("CINCH_CLANG_LIBRARY")) return {given};
  const auto folder = own_folder();
  for (const char* step : {".", "../lib", "../../lib", "../lib/cinch"}) {
    const auto path = folder / step / kFileName;
    std::error_code error;
    if (std::filesystem::exists(path, error)) paths.push_back(path.lexically_normal().string());
  }
  paths.emplace_back(kFileName);
  return paths;
}

rt::Result<OpenedBackend> open_backend() {
  std::string tried;
  for (const std::string& path : candidates()) {
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* reason = ::dlerror();
      tried += std::string(tried.empty() ? "" : "; ") + (reason ? reason : path.c_str());
      continue;
    }
    using Door = const CinchClangBackend* (*)();
    const auto door = reinterpret_cast<Door>(::dlsym(handle, "cinch_clang_backend"));
    if (door && door()->abi == kCinchClangAbi) return OpenedBackend{door(), path};
    tried += (tried.empty() ? "" : "; ") + path + ": of another version";
  }
  return rt::fail(rt::ErrorKind::Unavailable, "no compiler library: " + tried);
}

}  // namespace

const rt::Result<OpenedBackend>& clang_backend() {
  static const rt::Result<OpenedBackend> kBackend = open_backend();
  return kBackend;
}

}  // namespace cinch::codegen
