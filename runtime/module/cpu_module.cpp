// Loading through a memory file: the dynamic loader wants a path, /proc/self/fd gives one without
// touching a disk.
#include "runtime/module/cpu_module.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/core/sanitizer.h"

namespace cinch::rt {
namespace {

bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("movbe");
}

bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

bool write_all(int fd, std::span<const std::uint8_t> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

constexpr std::string_view kCpuPrefix = "cpu:";

}  // namespace

std::string_view host_cpu_arch() {
  static const std::string_view kArch = has_v4() ? "x86-64-v4" : has_v3() ? "x86-64-v3" : "x86-64";
  return kArch;
}

bool host_supports(std::string_view arch) {
  const std::string_view host = host_cpu_arch();
  if (arch == "x86-64") return true;
  if (arch == "x86-64-v3") return host != "x86-64";
  return arch == "x86-64-v4" && host == "x86-64-v4";
}

Result<CpuModule> CpuModule::load(std::span<const std::uint8_t> shared_object) {
  const int fd = ::memfd_create("cinch-kernels", MFD_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorKind::Io, std::string("no memory file: ") + std::strerror(errno), errno);
  }
  if (!write_all(fd, shared_object)) {
    const int code = errno;
    ::close(fd);
    return fail(ErrorKind::Io, std::string("memory file: ") + std::strerror(code), code);
  }
  // A sanitizer's symbolizer is a process of its own: it opens the module by the same path.
  const std::string process = kAddressSanitizer ? std::to_string(::getpid()) : "self";
  const std::string path = "/proc/" + process + "/fd/" + std::to_string(fd);
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* message = handle ? nullptr : ::dlerror();
  if (!handle) {
    ::close(fd);
    return fail(ErrorKind::CorruptFile,
                std::string("kernels cannot be loaded: ") + (message ? message : "unknown reason"));
  }
  CpuModule module;
  module.handle_ = handle;
  // The loader knows modules by their path: while this one lives, no other may get the same number.
  module.file_ = fd;
  return module;
}

Result<CpuModule> CpuModule::load(const ProgramImage& image) {
  if (!image.target.starts_with(kCpuPrefix)) {
    return fail(ErrorKind::Unavailable, "image for target " + image.target + ", not a CPU");
  }
  const std::string_view arch = std::string_view(image.target).substr(kCpuPrefix.size());
  if (!host_supports(arch)) {
    return fail(ErrorKind::Unavailable,
                "image for " + image.target + ", this machine has " + std::string(host_cpu_arch()));
  }
  Result<CpuModule> module = load(image.binary);
  if (!module) return module;
  for (const KernelInfo& info : image.kernels) {
    const KernelFunction kernel = module->find(info.symbol);
    if (!kernel) return fail(ErrorKind::CorruptFile, "kernel " + info.symbol + " is missing");
    module->kernels_.push_back(kernel);
  }
  return module;
}

CpuModule::CpuModule(CpuModule&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)),
      file_(std::exchange(other.file_, -1)),
      kernels_(std::move(other.kernels_)) {}

CpuModule& CpuModule::operator=(CpuModule&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(file_, other.file_);
  std::swap(kernels_, other.kernels_);
  return *this;
}

CpuModule::~CpuModule() {
  if (handle_) ::dlclose(handle_);
  if (file_ >= 0) ::close(file_);
}

KernelFunction CpuModule::find(const std::string& symbol) const {
  return reinterpret_cast<KernelFunction>(::dlsym(handle_, symbol.c_str()));
}

}  // namespace cinch::rt
