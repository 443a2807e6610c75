// LLD in process, from one memory file to another. LLD keeps global state: one link at a time.
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <vector>

#include "codegen/jit/clang/stages.h"

LLD_HAS_DRIVER(elf)

namespace cinch::clang_backend {
namespace {

// A memory file, closed at the end of its scope.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  bool is_open() const { return fd_ >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  bool write(const Bytes& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t wrote = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (wrote <= 0) return false;
      done += static_cast<std::size_t>(wrote);
    }
    return true;
  }

  Bytes read() {
    const off_t size = ::lseek(fd_, 0, SEEK_END);
    Bytes bytes(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got =
          ::pread(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
      if (got <= 0) return {};
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  }

 private:
  int fd_;
};

}  // namespace

Bytes link_shared_object(const Bytes& object, std::string& log) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  MemoryFile input("cinch-object"), output("cinch-shared-object");
  if (!input.is_open() || !output.is_open() || !input.write(object)) {
    log += "no memory file for the linker";
    return {};
  }
  const std::string input_path = input.path(), output_path = output.path();
  // The output is written through its descriptor, not mapped and renamed.
  const std::vector<const char*> args = {"ld.lld",
                                         "-shared",
                                         "--threads=1",
                                         "--no-mmap-output-file",
                                         "--build-id=none",
                                         "-z",
                                         "undefs",
                                         "-z",
                                         "noexecstack",
                                         "--hash-style=gnu",
                                         "--gc-sections",
                                         "-soname",
                                         "cinch-kernels",
                                         "-o",
                                         output_path.c_str(),
                                         input_path.c_str()};
  llvm::raw_string_ostream log_stream(log);
  const lld::Result result =
      lld::lldMain(args, log_stream, log_stream, {{lld::Gnu, &lld::elf::link}});
  return result.retCode == 0 ? output.read() : Bytes{};
}

}  // namespace cinch::clang_backend
