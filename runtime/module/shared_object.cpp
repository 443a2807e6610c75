// Loads through a memory file: the dynamic loader needs a path, and /proc has one without using a
// disk.
#include "runtime/module/shared_object.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/core/files/file_bytes.h"
#include "runtime/core/sanitizer.h"

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

}  // namespace cinch::rt
