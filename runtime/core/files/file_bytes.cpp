// Reads and writes whole files. A temporary file gets a random name, so that two writers never
// share one.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>

#include "runtime/core/files/file_bytes.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kFirstBytes = 1 << 16;
constexpr std::uint64_t kMostAtOnce = 1 << 20;

bool may_begin_with(std::span<const std::uint8_t> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](char c, std::uint8_t byte) { return static_cast<std::uint8_t>(c) == byte; });
}

Result<std::string> text_of(Result<FileReader> reader) {
  CINCH_TRY(reader);
  const auto bytes =
      TRY(reader->read_all({.magic = {}, .size_at = {}, .most_bytes = kMostTextBytes}));
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

tl::unexpected<Error> file_error(std::string_view verb, const std::string& name, int code) {
  const bool is_shortage = code == EMFILE || code == ENFILE || code == ENOMEM;
  return fail(is_shortage ? ErrorKind::Unavailable : ErrorKind::Io,
              fmt::format("cannot {} {}: {}", verb, name, std::strerror(code)), code);
}

std::string quoted_path(const std::string& path) {
  return "'" + path + "'";
}

FileReader::FileReader(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)) {
  struct stat found{};
  if (::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode)) {
    size_bytes_ = static_cast<std::uint64_t>(found.st_size);
  }
}

FileReader::FileReader(FileReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      name_(std::move(other.name_)),
      size_bytes_(other.size_bytes_) {}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<FileReader> FileReader::open(const std::filesystem::path& path) {
  const std::string name = quoted_path(path.string());
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return file_error("read", name, errno);
  return FileReader(descriptor, name);
}

Result<FileReader> FileReader::open_descriptor(int descriptor, const std::string& name) {
  const int own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return file_error("read", name, errno);
  return FileReader(own, name);
}

Status FileReader::read_up_to(std::uint64_t size_bytes, std::vector<std::uint8_t>& bytes) {
  while (bytes.size() < size_bytes) {
    const std::size_t have = bytes.size();
    // Reading one byte more than a regular file's size shows its end at once.
    const std::uint64_t likely = size_bytes_ >= have ? size_bytes_ - have + 1 : 0;
    const std::uint64_t wanted =
        std::min(std::max(likely, std::uint64_t{kFirstBytes}), kMostAtOnce);
    bytes.resize(have + static_cast<std::size_t>(std::min(wanted, size_bytes - have)));
    const ::ssize_t got = ::read(descriptor_, bytes.data() + have, bytes.size() - have);
    const int code = errno;
    bytes.resize(have + static_cast<std::size_t>(std::max<::ssize_t>(got, 0)));
    if (got == 0) return Ok{};
    if (got < 0 && code != EINTR) return file_error("read", name_, code);
  }
  return Ok{};
}

Result<std::vector<std::uint8_t>> FileReader::read_all(const ReadLimits& limits) {
  std::vector<std::uint8_t> bytes;
  Status status = read_up_to(std::min<std::uint64_t>(kFirstBytes, limits.most_bytes), bytes);
  if (status && !may_begin_with(bytes, limits.magic)) return bytes;
  std::uint64_t named = limits.most_bytes;  // what the file says itself, unless it ends before
  if (limits.size_at && bytes.size() >= *limits.size_at + sizeof named)
    std::memcpy(&named, bytes.data() + *limits.size_at, sizeof named);
  const std::uint64_t most = std::min(limits.most_bytes, std::max(named, size_bytes_));
  const bool is_too_large = size_bytes_ > limits.most_bytes;
  if (status && !is_too_large) status = read_up_to(most + 1, bytes);
  CINCH_TRY(status);
  if (!is_too_large && bytes.size() <= limits.most_bytes) return bytes;
  return fail(ErrorKind::Io,
              fmt::format("cannot read {}: more than {} bytes", name_, limits.most_bytes));
}

Result<std::vector<std::uint8_t>> read_file_bytes(const std::filesystem::path& path,
                                                  const ReadLimits& limits) {
  auto reader = TRY(FileReader::open(path));
  return reader.read_all(limits);
}

Result<std::string> read_text_file(const std::filesystem::path& path) {
  return text_of(FileReader::open(path));
}

Result<std::string> read_text_input() {
  return text_of(FileReader::open_descriptor(STDIN_FILENO, "standard input"));
}

// Writing; see file_bytes.h. The temporary file gets a random name, so that two writers, in one
// process or on two machines with one disk, do not share one.

namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::uint8_t>;
using Stat = struct stat;

constexpr int kMostLinks = 40;  // as many as the system follows
constexpr int kMostNames = 100;
constexpr std::size_t kMostNameBytes = 200;  // of at most 255, with room for a suffix
constexpr ::mode_t kAllModes = 07777, kPlainModes = 0777, kModesOfOtherGroup = 0707;
constexpr ::mode_t kNewMode = 0666, kOwnerAlone = 0600;

// The errno of a failed call; 0 for success.
using Code = int;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool is_link(const fs::path& path) {
  Stat found{};
  return ::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
}

// Is it a link of /proc, which stands for a descriptor or the like and leads to no path?
bool is_of_proc(const fs::path& path) {
  struct statfs found{};
  return ::statfs(folder_of(path).c_str(), &found) == 0 && found.f_type == PROC_SUPER_MAGIC;
}

// May somebody else have put the link there, to lead our output to a file of ours? Linux asks the
// same where fs.protected_symlinks is set.
bool is_planted(const fs::path& path, const Stat& link) {
  Stat folder{};
  if (::stat(folder_of(path).c_str(), &folder) != 0) return false;
  const bool is_shared = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return is_shared && link.st_uid != ::geteuid() && link.st_uid != folder.st_uid;
}

// Follows links by hand, since the last one may lead to a file that does not exist yet.
Code follow_links(fs::path& path) {
  for (int i = 0; i < kMostLinks; ++i) {
    Stat found{};
    const bool is_link = ::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
    if (!is_link || is_of_proc(path)) return 0;
    if (is_planted(path, found)) return EACCES;
    std::error_code error;
    const fs::path to = fs::read_symlink(path, error);
    if (error) return error.value();
    path = to.is_absolute() ? to : path.has_parent_path() ? path.parent_path() / to : to;
  }
  return ELOOP;
}

// The descriptor of this process that the path names.
std::optional<int> own_descriptor(const fs::path& path, const Stat& there) {
  if (!is_link(path) || !is_of_proc(path)) return std::nullopt;
  const std::string name = path.filename().string();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  Stat found{};
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  if (!is_number || ::fstat(number, &found) != 0) return std::nullopt;
  const bool is_same = found.st_dev == there.st_dev && found.st_ino == there.st_ino;
  return is_same ? std::optional(number) : std::nullopt;
}

// While this lives, writing to a pipe without readers is an error, not the end of the process.
class BrokenPipesAreErrors {
 public:
  BrokenPipesAreErrors() {
    ::sigset_t pending;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    was_pending_ = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BrokenPipesAreErrors() {
    const timespec now{};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipesAreErrors(const BrokenPipesAreErrors&) = delete;
  BrokenPipesAreErrors& operator=(const BrokenPipesAreErrors&) = delete;

 private:
  ::sigset_t pipe_, before_;
  bool was_pending_ = false;
};

Code write_through(const fs::path& path, const Stat& there, Bytes bytes) {
  const BrokenPipesAreErrors scope;
  const std::optional<int> own = own_descriptor(path, there);
  int descriptor = -1;
  do {
    descriptor = own ? ::fcntl(*own, F_DUPFD_CLOEXEC, 0)
                     : ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return errno;
  const Code code = write_all(descriptor, bytes);
  const Code closing = ::close(descriptor) == 0 ? 0 : errno;
  return code != 0 ? code : closing;
}

// Makes the temporary file. If it is to replace `old`, only the owner has rights at first.
int create_beside(const fs::path& path, const Stat* old, const PartialFileWatch& watch,
                  fs::path& partial) {
  const std::string name = path.filename().string().substr(0, kMostNameBytes);
  for (int i = 0; i < kMostNames; ++i) {
    std::uint64_t drawn = 0;
    if (::getrandom(&drawn, sizeof drawn, 0) != static_cast<::ssize_t>(sizeof drawn)) return -1;
    partial = folder_of(path) / fmt::format("{}.{:016x}.partial", name, drawn);
    if (watch) watch(partial.string());
    const int descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                  old == nullptr ? kNewMode : kOwnerAlone);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

Code replace(const fs::path& path, const Stat* old, Bytes bytes, const PartialFileWatch& watch) {
  if (old != nullptr && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) return errno;
  fs::path partial;
  const int descriptor = create_beside(path, old, watch, partial);
  if (descriptor < 0) return errno;
  Code code = write_all(descriptor, bytes);
  // A file of another owner gets no more rights than everybody had. If the system keeps neither
  // owner nor mode, as some file systems do, the file stays as it was made.
  if (code == 0 && old != nullptr) {
    constexpr auto kAnyUser = static_cast<::uid_t>(-1);
    const bool is_kept = ::fchown(descriptor, old->st_uid, old->st_gid) == 0;
    const bool has_group = is_kept || ::fchown(descriptor, kAnyUser, old->st_gid) == 0;
    const ::mode_t kept = is_kept ? kAllModes : has_group ? kPlainModes : kModesOfOtherGroup;
    static_cast<void>(::fchmod(descriptor, old->st_mode & kept));
  }
  // A disk that cannot flush is not an error of the file.
  if (code == 0 && ::fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP &&
      errno != EROFS)
    code = errno;
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code == 0 && ::rename(partial.c_str(), path.c_str()) != 0) code = errno;
  if (code != 0) ::unlink(partial.c_str());
  return code;
}

}  // namespace

int write_all(int descriptor, Bytes bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return 0;
}

Status write_file_bytes(const fs::path& path, Bytes bytes, const PartialFileWatch& watch) {
  fs::path target = path;
  Stat there{};
  Code code = follow_links(target);
  if (code == 0) {
    const Code looking = ::stat(target.c_str(), &there) == 0 ? 0 : errno;
    if (looking == ENOENT || (looking == 0 && S_ISREG(there.st_mode) && !is_of_proc(target))) {
      code = replace(target, looking == 0 ? &there : nullptr, bytes, watch);
    } else if (looking != 0 || S_ISDIR(there.st_mode)) {
      code = looking != 0 ? looking : EISDIR;
    } else {
      code = write_through(target, there, bytes);
    }
  }
  if (watch) watch("");
  if (code != 0) return file_error("write", quoted_path(path.string()), code);
  return Ok{};
}

}  // namespace cinch::rt
