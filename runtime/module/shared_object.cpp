// Loads through a memory file: the dynamic loader needs a path, and /proc has one without using a
// disk.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/log.h"
#include "runtime/core/sanitizer.h"
#include "runtime/module/shared_object.h"

namespace cinch::rt {
Result<SharedObject> SharedObject::load(std::span<const std::uint8_t> bytes,
                                        const std::string& what) {
  SharedObject object;
  // The loader identifies libraries by their path: while this one lives, no other may get the same
  // descriptor number.
  object.file_ = ::memfd_create("cinch-kernels", MFD_CLOEXEC);
  const int code = object.file_ < 0 ? errno : write_all(object.file_, bytes);
  if (code != 0) {
    return fail(ErrorKind::Unavailable, what + ": no memory file: " + std::strerror(code), code);
  }
  // A sanitizer's symbolizer is a separate process, which opens the object by the same path.
  const std::string process = kAddressSanitizer ? std::to_string(::getpid()) : "self";
  const std::string path = "/proc/" + process + "/fd/" + std::to_string(object.file_);
  object.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object.handle_ == nullptr) {
    const char* message = ::dlerror();
    return fail(ErrorKind::CorruptFile,
                what + " cannot be loaded: " + (message ? message : "unknown reason"));
  }
  return object;
}

SharedObject::SharedObject(SharedObject&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), file_(std::exchange(other.file_, -1)) {}

SharedObject& SharedObject::operator=(SharedObject&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(file_, other.file_);
  return *this;
}

SharedObject::~SharedObject() {
  if (handle_ != nullptr) ::dlclose(handle_);
  if (file_ >= 0) ::close(file_);
}

void* SharedObject::find(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

// Where libraries are looked for.

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
