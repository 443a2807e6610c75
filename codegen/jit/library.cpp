// Places to search: CINCH_CLANG_LIBRARY, else those of library_paths.
#include "codegen/jit/library.h"

#include <dlfcn.h>

#include <string>

#include "runtime/module/shared_object.h"

namespace cinch::codegen {
namespace {

constexpr const char* kFileName = "libcinch_clang.so";

rt::Result<OpenedBackend> open_backend() {
  std::string tried;
  for (const std::string& path : rt::library_paths(kFileName, "CINCH_CLANG_LIBRARY")) {
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
