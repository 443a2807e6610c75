// Read-only folders, full disks and killed writers: kept entries stay whole, a failure to keep one
// is an error, and nothing is left behind. Each test runs in a process of its own, which may drop
// its rights.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <thread>

#include "tests/unit/runtime/cache/cache_fixture.h"

namespace cinch::rt {
namespace {

namespace fs = std::filesystem;

// Whether `body` holds in another process.
bool holds_in_a_process(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Root may write everywhere: becomes nobody where it is root.
bool give_up_root() {
  constexpr uid_t kNobody = 65534;
  return ::getuid() != 0 || (::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
}

// A full disk, as far as files of this process go: writes beyond `bytes` of a file fail.
bool limit_files(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  return ::signal(SIGXFSZ, SIG_IGN) != SIG_ERR && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

bool is_io_error(const Status& status) {
  return !status && status.error().kind == ErrorKind::Io && !status.error().message.empty();
}

std::size_t num_files(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    count += entry.is_regular_file();
  return count;
}

TEST_F(ImageCacheTest, ServesFromAFolderThatItMayNotWrite) {
  ASSERT_TRUE(cache().put(kKey, entry_called("kept")));
  const fs::path inner = only_file().parent_path();
  const auto read_only = fs::perms::owner_read | fs::perms::owner_exec | fs::perms::group_read |
                         fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec;
  for (const fs::path& path : {inner, settings.folder, root}) fs::permissions(path, read_only);
  EXPECT_TRUE(holds_in_a_process([&] {
    if (!give_up_root()) return false;
    const auto found = cache().find(kKey);
    const Hash128 elsewhere{0xffff, 0};  // whose folder would have to be made
    return found && found->title == "kept" && is_io_error(cache().put(kKey, entry_called("new"))) &&
           is_io_error(cache().put(elsewhere, entry_called("new"))) && !cache().find(elsewhere) &&
           cache().clear() == 0;
  }));
  for (const fs::path& path : {root, settings.folder, inner}) {
    fs::permissions(path, fs::perms::owner_all);
  }
  EXPECT_EQ(num_files(root), 1u);
  EXPECT_EQ(cache().find(kKey)->title, "kept");
}

TEST_F(ImageCacheTest, KeepsWhatItHasWhereTheDiskIsFull) {
  ASSERT_TRUE(cache().put(kKey, entry_called("small", 1000)));
  for (const rlim_t room : {0, 1, 100, 5000, 60'000}) {
    EXPECT_TRUE(holds_in_a_process([&] {
      if (!limit_files(room)) return false;
      return is_io_error(cache().put(kKey, entry_called("large", 100'000))) &&
             is_io_error(cache().put(kOtherKey, entry_called("large", 100'000))) &&
             cache().find(kKey)->title == "small" && !cache().find(kOtherKey);
    })) << room;
    EXPECT_EQ(num_files(root), 1u) << room;
  }
}

// A writer is killed at many points: the entry is the old one or a new one, whole; a partial file
// is no entry, and is removed when it is old.
TEST_F(ImageCacheTest, OutlivesWritersThatAreKilled) {
  ASSERT_TRUE(cache().put(kKey, entry_called("first", 400'000)));
  for (int round = 0; round < 40; ++round) {
    const pid_t writer = ::fork();
    if (writer == 0) {
      while (cache().put(kKey, entry_called("later", 400'000))) continue;
      ::_exit(1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(500 + 337 * round));
    ::kill(writer, SIGKILL);
    int status = -1;
    ::waitpid(writer, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto found = cache().find(kKey);
    ASSERT_TRUE(found);
    ASSERT_EQ(found->image.info.name, found->title);
    ASSERT_EQ(cache().list().size(), 1u);
  }
  for (const auto& file : fs::directory_iterator(only_file().parent_path())) {
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  ASSERT_TRUE(cache().put(kKey, entry_called("last")));
  EXPECT_EQ(num_files(root), 1u);
}

}  // namespace
}  // namespace cinch::rt
