// Entries are code: a file that somebody else could have written is not read, wherever it lies, and
// `problems` says why. As root a test gives files to another user; without root these tests are
// skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/files/file_bytes.h"
#include "tests/unit/runtime/cache/cache_fixture.h"

namespace cinch::rt {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uid_t kSomebody = 12345;

mode_t mode_of(const fs::path& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
}

class CacheTrustTest : public ImageCacheTest {
 protected:
  // An entry that is found, and where it lies.
  void SetUp() override {
    ImageCacheTest::SetUp();
    ASSERT_TRUE(cache().put(kKey, entry_called("kept")));
    file = only_file();
    ASSERT_TRUE(cache().find(kKey));
    EXPECT_THAT(cache().problems(), IsEmpty());
  }

  void expect_refused(const fs::path& path, const char* why) {
    EXPECT_FALSE(cache().find(kKey));
    EXPECT_THAT(cache().problems(), ElementsAre(HasSubstr(path.string() + " " + why)));
    // The same as a shared layer.
    CacheSettings others;
    others.folder = root / "others";
    others.shared = {settings.folder};
    EXPECT_FALSE(ImageCache(others).find(kKey));
    EXPECT_THAT(ImageCache(others).problems(), ElementsAre(HasSubstr(why)));
  }

  std::vector<fs::path> chain() const { return {settings.folder, file.parent_path(), file}; }

  fs::path file;
};

TEST_F(CacheTrustTest, TellsWhereNothingCanBeKept) {
  EXPECT_TRUE(cache().check_writable());
  CacheSettings below_a_file;
  below_a_file.folder = file / "a" / "b";
  const Status status = ImageCache(below_a_file).check_writable();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "cannot write '" + file.string() + "': Not a directory");
  CacheSettings not_there;
  not_there.folder = root / "c" / "d";
  EXPECT_TRUE(ImageCache(not_there).check_writable());
}

TEST_F(CacheTrustTest, ReadsNothingThatAnotherUserOwns) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  for (const fs::path& path : chain()) {
    ASSERT_EQ(::chown(path.c_str(), kSomebody, kSomebody), 0);
    expect_refused(path, "belongs to user 12345");
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
    EXPECT_TRUE(cache().find(kKey));
  }
}

TEST_F(CacheTrustTest, ReadsNothingThatOthersMayWrite) {
  for (const fs::path& path : chain()) {
    const mode_t before = mode_of(path);
    for (const mode_t extra : {S_IWGRP, S_IWOTH}) {
      ASSERT_EQ(::chmod(path.c_str(), before | extra), 0);
      expect_refused(path, "may be written by others");
    }
    ASSERT_EQ(::chmod(path.c_str(), before), 0);
    EXPECT_TRUE(cache().find(kKey));
  }
}

TEST_F(CacheTrustTest, FollowsNoLinks) {
  for (const fs::path& path : chain()) {
    const fs::path elsewhere = root / "elsewhere";
    fs::rename(path, elsewhere);
    fs::create_symlink(elsewhere, path);
    EXPECT_FALSE(cache().find(kKey)) << path;
    if (path == settings.folder) {
      settings.folder += "/";
      EXPECT_FALSE(cache().find(kKey)) << "with a slash behind it";
      EXPECT_FALSE(cache().put(kOtherKey, entry_called("new")));
      settings.folder = path;
    }
    expect_refused(path, "is a link");
    fs::remove(path);
    fs::rename(elsewhere, path);
    EXPECT_TRUE(cache().find(kKey));
  }
}

TEST_F(CacheTrustTest, ReadsNoPipe) {
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  expect_refused(file, "is not a file");
}

TEST_F(CacheTrustTest, AnEntryHoldsItsOwnKeysProgramAlone) {
  const auto bytes = read_file_bytes(file);
  ASSERT_TRUE(bytes);
  const fs::path other = file.parent_path() / (to_hex(kOtherKey) + file.extension().string());
  ASSERT_TRUE(write_file_bytes(other, *bytes));
  EXPECT_FALSE(cache().find(kOtherKey));
  EXPECT_TRUE(cache().find(kKey));
  EXPECT_THAT(cache().problems(),
              ElementsAre(other.string() + ": holds the program of another key"));
  for (const ListedEntry& listed : cache().list()) {
    EXPECT_EQ(listed.problem.has_value(), listed.path == other);
  }
}

TEST_F(CacheTrustTest, KeepsNothingWhereOthersMayWrite) {
  fs::permissions(settings.folder, fs::perms::all);
  const Status status = cache().put(kOtherKey, entry_called("new"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Io);
  EXPECT_THAT(status.error().message, HasSubstr("may be written by others (mode 777)"));
}

TEST_F(CacheTrustTest, MakesItsFolderForThisUserAlone) {
  const mode_t before = ::umask(0);
  settings.folder = root / "deep" / "in" / "it";
  EXPECT_TRUE(cache().put(kKey, entry_called("kept")));
  ::umask(before);
  EXPECT_EQ(mode_of(settings.folder), 0700U);
  EXPECT_EQ(mode_of(root / "deep"), 0700U);
  const fs::path made = only_file();
  EXPECT_EQ(mode_of(made.parent_path()), 0755U);
  EXPECT_EQ(mode_of(made), 0644U);
  EXPECT_TRUE(cache().find(kKey));
}

TEST_F(CacheTrustTest, WhatIsNotThereOrOfAnotherVersionIsNoProblem) {
  settings.shared = {root / "missing"};
  auto bytes = read_file_bytes(file);
  ASSERT_TRUE(bytes);
  (*bytes)[8] += 1;
  ASSERT_TRUE(write_file_bytes(file, *bytes));
  EXPECT_FALSE(cache().find(kKey));
  EXPECT_THAT(cache().problems(), IsEmpty());
}

}  // namespace
}  // namespace cinch::rt
