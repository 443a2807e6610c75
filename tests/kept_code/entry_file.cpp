// An entry is locked (flock) while it is read or made, and begins with size and hash of the rest.
// If a process was killed while it wrote, these do not match and the entry is made again.
#include "tests/kept_code/entry_file.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/core/hash.h"

namespace cinch::kept_code {
namespace {

// A rank that a test has stopped may hold a lock for ever.
constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::milliseconds kBetweenTries{20};

struct Head {
  std::uint64_t size_bytes = 0, hash = 0;
};

class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {}
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool lock(int kind) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (descriptor_ >= 0 && ::flock(descriptor_, kind | LOCK_NB) != 0) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(kBetweenTries);
    }
    return descriptor_ >= 0;
  }

  std::optional<Bytes> read() const {
    Head head;
    struct stat info{};
    if (::fstat(descriptor_, &info) != 0 ||
        ::pread(descriptor_, &head, sizeof head, 0) != static_cast<ssize_t>(sizeof head) ||
        head.size_bytes + sizeof head != static_cast<std::uint64_t>(info.st_size)) {
      return std::nullopt;
    }
    Bytes bytes(head.size_bytes);
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), sizeof head);
    if (got != static_cast<ssize_t>(bytes.size())) return std::nullopt;
    if (hash64(bytes.data(), bytes.size()) != head.hash) return std::nullopt;
    return bytes;
  }

  void write(const Bytes& bytes) const {
    const Head head{bytes.size(), hash64(bytes.data(), bytes.size())};
    const bool is_written =
        ::ftruncate(descriptor_, 0) == 0 &&
        ::pwrite(descriptor_, bytes.data(), bytes.size(), sizeof head) ==
            static_cast<ssize_t>(bytes.size()) &&
        ::pwrite(descriptor_, &head, sizeof head, 0) == static_cast<ssize_t>(sizeof head);
    if (!is_written) (void)!::ftruncate(descriptor_, 0);
  }

 private:
  int descriptor_;
};

}  // namespace

std::optional<Bytes> find_or_make(const std::string& path,
                                  const std::function<std::optional<Bytes>()>& make) {
  const LockedFile file(path);
  if (!file.lock(LOCK_SH)) return make();
  if (auto bytes = file.read()) return bytes;
  if (!file.lock(LOCK_EX)) return make();
  // Another process may have been first.
  if (auto bytes = file.read()) return bytes;
  auto made = make();
  if (made) file.write(*made);
  return made;
}

}  // namespace cinch::kept_code
