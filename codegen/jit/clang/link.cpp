// LLD in process. Objects are memory files. LLD insists on renaming its output into place, so that
// goes through a folder of its own. LLD has global state: one link at a time.
#include <lld/Common/Driver.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/Twine.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
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

// A new folder, removed with its contents at the end of its scope.
class OutputFolder {
 public:
  OutputFolder() : error_(llvm::sys::fs::createUniqueDirectory("cinch-link", path_)) {}
  ~OutputFolder() {
    // If it cannot be removed, it stays in the folder for temporary files.
    if (!error_) static_cast<void>(llvm::sys::fs::remove_directories(path_));
  }
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::error_code& error() const { return error_; }
  std::string file() const { return (path_ + "/kernels.so").str(); }

 private:
  llvm::SmallString<128> path_;
  std::error_code error_;
};

Bytes read_file(const std::string& path, std::string& log) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (buffer) return (*buffer)->getBuffer().str();
  log += path + ": " + buffer.getError().message();
  return {};
}

// Runs LLD over `objects` with `more_args`; `script` is the text of a version script, or empty.
Bytes link(const std::vector<std::string_view>& objects, const std::string& script,
           const std::vector<std::string>& more_args, std::string& log) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  OutputFolder output;
  std::deque<MemoryFile> inputs;
  if (output.error()) {
    log += "no folder for temporary files (TMPDIR): " + output.error().message();
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
                                   "-o",     output.file()};
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
  return result.retCode == 0 ? read_file(output.file(), log) : Bytes{};
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
