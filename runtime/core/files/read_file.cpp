// Reading; see file_bytes.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

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

// The size that a file names itself, or nothing if it ends before.
std::optional<std::uint64_t> named_size(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint64_t size_bytes = 0;
  if (bytes.size() < at + sizeof size_bytes) return std::nullopt;
  std::memcpy(&size_bytes, bytes.data() + at, sizeof size_bytes);
  return size_bytes;
}

Result<std::string> text_of(Result<FileReader> reader) {
  CINCH_TRY(reader);
  const auto bytes = reader->read_all({.magic = {}, .size_at = {}, .most_bytes = kMostTextBytes});
  CINCH_TRY(bytes);
  return std::string(bytes->begin(), bytes->end());
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

Result<FileReader> FileReader::open_standard_input() {
  return open_descriptor(STDIN_FILENO, "standard input");
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
  const auto named = limits.size_at ? named_size(bytes, *limits.size_at) : std::nullopt;
  const std::uint64_t most =
      std::min(limits.most_bytes, std::max(named.value_or(limits.most_bytes), size_bytes_));
  const bool is_too_large = size_bytes_ > limits.most_bytes;
  if (status && !is_too_large) status = read_up_to(most + 1, bytes);
  CINCH_TRY(status);
  if (!is_too_large && bytes.size() <= limits.most_bytes) return bytes;
  return fail(ErrorKind::Io,
              fmt::format("cannot read {}: more than {} bytes", name_, limits.most_bytes));
}

Result<std::vector<std::uint8_t>> read_file_bytes(const std::filesystem::path& path,
                                                  const ReadLimits& limits) {
  auto reader = FileReader::open(path);
  CINCH_TRY(reader);
  return reader->read_all(limits);
}

Result<std::string> read_text_file(const std::filesystem::path& path) {
  return text_of(FileReader::open(path));
}

Result<std::string> read_text_input() {
  return text_of(FileReader::open_standard_input());
}

}  // namespace cinch::rt
