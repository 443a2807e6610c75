// The cache of compiled programs: entries that were put are found; changes to the files cause at
// worst a miss.
#include "runtime/cache/image_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "runtime/core/files/file_bytes.h"
#include "tests/unit/runtime/cache/cache_fixture.h"

namespace cinch::rt {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST_F(ImageCacheTest, FindsWhatWasPut) {
  EXPECT_FALSE(cache().find(kKey));
  ASSERT_TRUE(cache().put(kKey, entry_called("sample")));
  const auto found = cache().find(kKey);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->title, "sample");
  EXPECT_EQ(found->imports, entry_called("sample").imports);
  EXPECT_EQ(found->image.info.name, "sample");
  EXPECT_EQ(found->image.binary, entry_called("sample").image.binary);
  EXPECT_FALSE(cache().find(kOtherKey));
}

TEST_F(ImageCacheTest, TakesADamagedEntryForAMiss) {
  ASSERT_TRUE(cache().put(kKey, entry_called("sample")));
  const auto path = only_file();
  const auto whole = read_file_bytes(path);
  ASSERT_TRUE(whole);
  for (std::size_t at = 0; at < whole->size(); at += 7) {
    auto changed = *whole;
    changed[at] ^= 0x10;
    ASSERT_TRUE(write_file_bytes(path, changed));
    EXPECT_FALSE(cache().find(kKey)) << at;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{39}, whole->size() - 1}) {
    ASSERT_TRUE(write_file_bytes(path, std::span(*whole).first(size)));
    EXPECT_FALSE(cache().find(kKey)) << size;
    EXPECT_TRUE(cache().list()[0].problem);
  }
  ASSERT_TRUE(cache().put(kKey, entry_called("again")));
  EXPECT_EQ(cache().find(kKey)->title, "again");
}

TEST_F(ImageCacheTest, LooksIntoSharedFoldersAndNeverWritesThere) {
  CacheSettings filling;
  filling.folder = root / "shared";
  ASSERT_TRUE(ImageCache(filling).put(kKey, entry_called("shared")));
  settings.shared = {root / "missing", filling.folder};
  EXPECT_EQ(cache().find(kKey)->title, "shared");
  ASSERT_TRUE(cache().put(kKey, entry_called("own")));
  EXPECT_EQ(cache().find(kKey)->title, "own");
  EXPECT_EQ(ImageCache(filling).find(kKey)->title, "shared");
  EXPECT_EQ(cache().clear(), 1u);
  EXPECT_EQ(cache().find(kKey)->title, "shared");
}

TEST_F(ImageCacheTest, PacksEntries) {
  CacheEntry kept = entry_called("kept", 100'000);
  for (std::size_t i = 0; i < 1000; ++i) kept.image.binary[i * 50] = static_cast<std::uint8_t>(i);
  ASSERT_TRUE(cache().put(kKey, kept));
  ASSERT_TRUE(cache().put(kOtherKey, entry_called("other", 50)));
  const auto plain = cache().find_stored(kKey);
  ASSERT_TRUE(plain);
  const auto packed = cache().pack();
  ASSERT_TRUE(packed);
  EXPECT_EQ(*packed, 2u);
  for (const auto& listed : cache().list()) {
    EXPECT_FALSE(listed.problem);
    EXPECT_LT(listed.size_bytes, 20'000u);
  }
  const auto found = cache().find(kKey);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->title, "kept");
  EXPECT_EQ(found->imports, kept.imports);
  EXPECT_EQ(found->image.binary, kept.image.binary);
  EXPECT_EQ(cache().find_stored(kKey)->image, plain->image);
  EXPECT_TRUE(cache().find(kOtherKey));
  EXPECT_EQ(*cache().pack(), 2u);  // what is packed stays so
  EXPECT_EQ(cache().find_stored(kKey)->image, plain->image);
}

TEST_F(ImageCacheTest, TakesADamagedPackedEntryForAMiss) {
  ASSERT_TRUE(cache().put(kKey, entry_called("sample")));
  ASSERT_TRUE(cache().pack());
  const auto path = only_file();
  const auto whole = read_file_bytes(path);
  ASSERT_TRUE(whole);
  for (std::size_t at = 0; at < whole->size(); at += 3) {
    auto changed = *whole;
    changed[at] ^= 0x10;
    ASSERT_TRUE(write_file_bytes(path, changed));
    EXPECT_FALSE(cache().find(kKey)) << at;
  }
}

TEST_F(ImageCacheTest, KeepsNothingWhenItIsOff) {
  settings.is_on = false;
  const auto status = cache().put(kKey, entry_called("sample"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Unavailable);
  EXPECT_FALSE(fs::exists(settings.folder));
  settings.is_on = true;
  ASSERT_TRUE(cache().put(kKey, entry_called("sample")));
  settings.is_on = false;
  EXPECT_FALSE(cache().find(kKey));
}

TEST_F(ImageCacheTest, GivesAnErrorWhereItCannotWrite) {
  ASSERT_TRUE(write_file_bytes(root / "own", std::vector<std::uint8_t>(3, 0)));  // no folder
  const auto status = cache().put(kKey, entry_called("sample"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::Io);
  EXPECT_FALSE(cache().find(kKey));
  EXPECT_TRUE(cache().list().empty());
}

TEST_F(ImageCacheTest, RemovesWhatWasNotUsedLongest) {
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(cache().put({i, i}, entry_called("entry " + std::to_string(i), 100'000)));
  }
  const auto now = fs::file_time_type::clock::now();
  for (const auto& listed : cache().list()) {
    const int age = listed.title == "entry 0" ? 1 : 100;
    fs::last_write_time(listed.path, now - std::chrono::hours(age));
  }
  ASSERT_TRUE(cache().find({2, 2}));  // used just now
  settings.max_bytes = 350'000;
  ASSERT_TRUE(cache().put({9, 9}, entry_called("entry 9", 100'000)));
  std::vector<std::string> titles;
  for (const auto& listed : cache().list()) titles.push_back(listed.title);
  // The first two within a tick of the file system's clock, in whatever order.
  EXPECT_THAT(titles, UnorderedElementsAre("entry 9", "entry 2", "entry 0"));
}

TEST_F(ImageCacheTest, RemovesWhatDeadWritersLeft) {
  ASSERT_TRUE(cache().put(kKey, entry_called("sample")));
  const auto folder = only_file().parent_path();
  const auto old = folder / "x.cinchcache.00.partial", young = folder / "y.cinchcache.01.partial";
  for (const auto& path : {old, young}) {
    ASSERT_TRUE(write_file_bytes(path, std::vector<std::uint8_t>(10, 1)));
  }
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(5));
  ASSERT_TRUE(cache().put(kOtherKey, entry_called("other")));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));
  EXPECT_EQ(cache().clear(), 2u);
  EXPECT_TRUE(fs::exists(young));  // its writer may be about to rename it
}

// Threads and processes at once, one of them clearing: a reader sees a whole entry or none.
TEST_F(ImageCacheTest, SharesOneKeyAmongProcesses) {
  constexpr int kProcesses = 4, kRounds = 60;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool is_fine = true;
      for (int i = 0; i < kRounds; ++i) {
        const auto title = std::string(1, static_cast<char>('a' + p));
        is_fine &= cache().put(kKey, entry_called(title, 50'000)).has_value();
        const auto found = cache().find(kKey);
        is_fine &= !found || found->image.info.name == found->title;
        if (p == 0 && i % 10 == 0) cache().clear();
      }
      ::_exit(is_fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(cache().find(kKey));
}

TEST(CacheSettings, ComeFromTheEnvironment) {
  ::setenv("CINCH_CACHE_DIR", "/a/b", 1);
  ::setenv("CINCH_CACHE_SHARED", "/c::/d e", 1);
  ::setenv("CINCH_CACHE_MAX_BYTES", "64KiB", 1);
  ::setenv("CINCH_CACHE", "off", 1);
  ::setenv("CINCH_BACKGROUND", "0", 1);
  auto settings = cache_settings_from_environment();
  EXPECT_EQ(settings.folder, "/a/b");
  EXPECT_THAT(settings.shared, ElementsAre("/c", "/d e"));
  EXPECT_EQ(settings.max_bytes, 65536u);
  EXPECT_FALSE(settings.is_on);
  EXPECT_FALSE(settings.improves);
  for (const char* name :
       {"CINCH_CACHE_DIR", "CINCH_CACHE_SHARED", "CINCH_CACHE", "CINCH_BACKGROUND"})
    ::unsetenv(name);
  ::setenv("CINCH_CACHE_MAX_BYTES", "12 MB", 1);
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  settings = cache_settings_from_environment();
  EXPECT_EQ(settings.folder, "/x/cinch");
  EXPECT_EQ(settings.max_bytes, CacheSettings().max_bytes);
  EXPECT_EQ(settings.problem, "CINCH_CACHE_MAX_BYTES is '12 MB', which is not a number of bytes");
  EXPECT_TRUE(settings.is_on);
  EXPECT_TRUE(settings.improves);
  // The XDG specification: relative paths are ignored.
  ::setenv("XDG_CACHE_HOME", "x", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(cache_settings_from_environment().folder, "/home/me/.cache/cinch");
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_settings_from_environment().folder, "/home/me/.cache/cinch");
  ::unsetenv("HOME");
  EXPECT_EQ(cache_settings_from_environment().folder, "");
}

}  // namespace
}  // namespace cinch::rt
