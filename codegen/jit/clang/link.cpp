// LLD in process. Objects are memory files and the output is a pipe, so code passes through no
// folder and no disk. LLD has global state: one link at a time.
#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>

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

  bool write(std::string_view bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t wrote = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (wrote <= 0) return false;
      done += static_cast<std::size_t>(wrote);
    }
    return true;
  }

 private:
  int fd_;
};

// A pipe, and a thread that keeps what is written to it. LLD writes to anything but a regular file
// as it is: for a regular one it maps a sparse file beside it, which kills the process where the
// disk is full, and renames that into place.
class OutputPipe {
 public:
  OutputPipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) {
      error_ = errno;
      return;
    }
    error_ = ::pthread_create(&reader_, nullptr, read_all, this);
    is_reading_ = error_ == 0;
  }
  ~OutputPipe() {
    static_cast<void>(take());
    if (ends_[0] >= 0) ::close(ends_[0]);
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  int error() const { return error_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[1]); }

  // What was written. Nothing is written afterwards.
  Bytes take() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
    if (std::exchange(is_reading_, false)) ::pthread_join(reader_, nullptr);
    return std::move(bytes_);
  }

 private:
  static void* read_all(void* pipe) {
    auto& self = *static_cast<OutputPipe*>(pipe);
    std::vector<char> part(1 << 16);
    for (;;) {
      const ssize_t got = ::read(self.ends_[0], part.data(), part.size());
      if (got == 0 || (got < 0 && errno != EINTR)) return nullptr;
      if (got > 0) self.bytes_.append(part.data(), static_cast<std::size_t>(got));
    }
  }

  int ends_[2] = {-1, -1};
  int error_ = 0;
  pthread_t reader_ = {};
  bool is_reading_ = false;
  Bytes bytes_;
};

// Runs LLD over `objects` with `more_args`; `script` is the text of a version script, or empty.
Bytes link(const std::vector<std::string_view>& objects, const std::string& script,
           const std::vector<std::string>& more_args, std::string& log) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  OutputPipe output;
  std::deque<MemoryFile> inputs;
  if (output.error() != 0) {
    log += "no pipe for the linker: " + std::string(std::strerror(output.error()));
    return {};
  }
  const auto keep = [&](std::string_view bytes) -> std::string {
    const MemoryFile& input = inputs.emplace_back("cinch-object");
    if (input.is_open() && input.write(bytes)) return input.path();
    log += "no memory file: " + std::string(std::strerror(errno));
    return {};
  };
  std::vector<std::string> args = {"ld.lld", "-shared",     "--threads=1",      "--build-id=none",
                                   "-z",     "noexecstack", "--hash-style=gnu", "--gc-sections",
                                   "-o",     output.path()};
  args.insert(args.end(), more_args.begin(), more_args.end());
  if (!script.empty()) args.push_back("--version-script=" + keep(script));
  for (std::string_view object : objects) {
    args.push_back(keep(object));
    if (args.back().empty()) return {};
  }
  std::vector<const char*> arg_ptrs;
  arg_ptrs.reserve(args.size());
  for (const std::string& arg : args) arg_ptrs.push_back(arg.c_str());
  llvm::raw_string_ostream log_stream(log);
  const lld::Result result =
      lld::lldMain(arg_ptrs, log_stream, log_stream, {{lld::Gnu, &lld::elf::link}});
  Bytes linked = output.take();
  return result.retCode == 0 ? linked : Bytes{};
}

}  // namespace

Bytes link_shared_object(const std::vector<std::string_view>& objects, bool needs_process,
                         std::string& log) {
  return link(objects, {}, {"-z", needs_process ? "undefs" : "defs", "-soname", "cinch-kernels"},
              log);
}

Bytes link_library(const std::vector<std::string_view>& objects, const std::string& soname,
                   const std::vector<std::string>& exports, std::string& log) {
  std::string script = "{ global: ";
  for (const std::string& symbol : exports) script += symbol + "; ";
  return link(objects, script + "local: *; };",
              {"-z", "defs", "-Bsymbolic", "-z", "relro", "-z", "now", "-soname", soname}, log);
}

}  // namespace cinch::clang_backend
