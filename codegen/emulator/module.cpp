// Loading through a memory file, as rt::CpuModule does.
#include "codegen/emulator/module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cinch::emulator {
namespace {

using rt::ErrorKind;

bool write_all(int file, std::span<const std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

rt::Result<Module> Module::load(std::span<const std::uint8_t> shared_object) {
  Module module;
  module.file_ = ::memfd_create("cinch-emulated", MFD_CLOEXEC);
  if (module.file_ < 0 || !write_all(module.file_, shared_object)) {
    return rt::fail(ErrorKind::Io, std::string("memory file: ") + std::strerror(errno), errno);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(module.file_);
  module.handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module.handle_) {
    const char* message = ::dlerror();
    return rt::fail(ErrorKind::CorruptFile, std::string("emulated kernels cannot be loaded: ") +
                                                (message ? message : "unknown reason"));
  }
  module.info_ = static_cast<const ModuleInfo*>(::dlsym(module.handle_, kModuleSymbol));
  if (!module.info_ || module.info_->abi != kModuleAbi) {
    return rt::fail(ErrorKind::CorruptFile,
                    "no kernels for the emulated GPU, or those of another version of Cinch");
  }
  return module;
}

Module::Module(Module&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      file_(std::exchange(other.file_, -1)),
      info_(std::exchange(other.info_, nullptr)) {}

Module& Module::operator=(Module&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(file_, other.file_);
  std::swap(info_, other.info_);
  return *this;
}

Module::~Module() {
  if (handle_) ::dlclose(handle_);
  if (file_ >= 0) ::close(file_);
}

std::vector<std::string> Module::kernels() const {
  std::vector<std::string> names;
  names.reserve(info_->num_kernels);
  for (std::uint64_t i = 0; i < info_->num_kernels; ++i) names.emplace_back(info_->kernels[i].name);
  return names;
}

const KernelEntry* Module::find(std::string_view kernel) const {
  for (std::uint64_t i = 0; i < info_->num_kernels; ++i) {
    if (kernel == info_->kernels[i].name) return &info_->kernels[i];
  }
  return nullptr;
}

std::string Module::line(std::uint32_t number) const {
  std::string_view text(info_->text, info_->text_size);
  for (std::uint32_t i = 1; i < number; ++i) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  if (number == 0) return {};
  text = text.substr(0, text.find('\n'));
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin));
}

}  // namespace cinch::emulator
