// Files are replaced without loss, and anything that is not a regular file stays what it is.
#include "runtime/core/files/file_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

namespace cinch::rt {
namespace {

namespace fs = std::filesystem;

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string text_at(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const fs::path& path, std::string_view text) {
  std::ofstream(path) << text;
}

class FileBytesTest : public testing::Test {
 public:
  ~FileBytesTest() override { fs::remove_all(folder); }

 protected:
  FileBytesTest() {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }

  // Names of all there is.
  std::size_t num_files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
  }

  const fs::path folder = fs::path(testing::TempDir()) / "cinch_file_bytes_test";
};

TEST_F(FileBytesTest, AReplacedFileKeepsItsMode) {
  const fs::path path = folder / "x";
  write_text(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  ASSERT_TRUE(write_file_bytes(path, bytes_of("new")));
  EXPECT_EQ(text_at(path), "new");
  struct stat found{};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0640U);
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(FileBytesTest, AReplacedFileKeepsItsOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const fs::path path = folder / "x";
  write_text(path, "old");
  ASSERT_EQ(::chown(path.c_str(), 12345, 23456), 0);
  ASSERT_TRUE(write_file_bytes(path, bytes_of("new")));
  struct stat found{};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, 12345U);
  EXPECT_EQ(found.st_gid, 23456U);
}

TEST_F(FileBytesTest, OfALinkTheTargetIsReplaced) {
  fs::create_directories(folder / "there");
  write_text(folder / "there" / "target", "old");
  fs::create_symlink("there/target", folder / "middle");
  fs::create_symlink(folder / "middle", folder / "link");
  ASSERT_TRUE(write_file_bytes(folder / "link", bytes_of("new")));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_TRUE(fs::is_symlink(folder / "middle"));
  EXPECT_FALSE(fs::is_symlink(folder / "there" / "target"));
  EXPECT_EQ(text_at(folder / "there" / "target"), "new");
}

TEST_F(FileBytesTest, ALinkToNothingMakesItsTarget) {
  fs::create_symlink("target", folder / "link");
  ASSERT_TRUE(write_file_bytes(folder / "link", bytes_of("new")));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(text_at(folder / "target"), "new");
}

TEST_F(FileBytesTest, ALinkThatAnotherUserPutIntoASharedFolderIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives links away";
  fs::create_symlink("target", folder / "link");
  ASSERT_EQ(::lchown((folder / "link").c_str(), 65534, 65534), 0);
  ASSERT_TRUE(write_file_bytes(folder / "link", bytes_of("of a folder of our own")));
  ASSERT_EQ(::chmod(folder.c_str(), 01777), 0);
  const auto status = write_file_bytes(folder / "link", bytes_of("new"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().native_code, EACCES);
  EXPECT_EQ(fs::file_size(folder / "target"), 22u);
  // The owner of the folder may put links there.
  ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(write_file_bytes(folder / "link", bytes_of("new")));
}

TEST_F(FileBytesTest, LoopsAndFoldersAreErrors) {
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  for (const fs::path& path : {folder / "a", folder}) {
    const Status written = write_file_bytes(path, bytes_of("new"));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().kind, ErrorKind::Io);
    EXPECT_NE(written.error().message.find(path.string()), std::string::npos);
    const auto read = read_file_bytes(path);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind, ErrorKind::Io);
  }
  EXPECT_TRUE(fs::is_symlink(folder / "a"));
}

TEST_F(FileBytesTest, APipeIsWrittenTo) {
  const fs::path path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = text_at(path); });
  EXPECT_TRUE(write_file_bytes(path, bytes_of("new")));
  reader.join();
  EXPECT_EQ(got, "new");
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST_F(FileBytesTest, ADeviceStaysOne) {
  constexpr unsigned kMemory = 1, kNull = 3, kFull = 7;
  for (const unsigned minor : {kNull, kFull}) {
    const fs::path path = folder / std::to_string(minor);
    const bool is_made = ::mknod(path.c_str(), S_IFCHR | 0600, makedev(kMemory, minor)) == 0;
    if (!is_made || ::access(path.c_str(), W_OK) != 0) GTEST_SKIP() << "no devices can be made";
    const Status written = write_file_bytes(path, bytes_of("new"));
    EXPECT_EQ(written.has_value(), minor == kNull);
    EXPECT_TRUE(fs::is_character_file(path));
  }
  EXPECT_EQ(num_files(), 2U);
}

TEST_F(FileBytesTest, ADescriptorOfTheProcessGoesOn) {
  const fs::path path = folder / "x";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(::write(descriptor, "one ", 4), 4);
  ASSERT_TRUE(write_file_bytes("/proc/self/fd/" + std::to_string(descriptor), bytes_of("two ")));
  ASSERT_TRUE(write_file_bytes("/dev/fd/" + std::to_string(descriptor), bytes_of("three ")));
  ASSERT_EQ(::write(descriptor, "four", 4), 4);
  ::close(descriptor);
  EXPECT_EQ(text_at(path), "one two three four");
}

TEST_F(FileBytesTest, ABrokenPipeIsAnError) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  const Status written =
      write_file_bytes("/proc/self/fd/" + std::to_string(ends[1]), bytes_of("new"));
  ::close(ends[1]);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().native_code, EPIPE);
}

TEST_F(FileBytesTest, TheWatchLearnsOfTheFileBeside) {
  std::vector<std::string> told;
  const auto watch = [&](const std::string& name) { told.push_back(name); };
  ASSERT_TRUE(write_file_bytes(folder / std::string(255, 'x'), bytes_of("new"), watch));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(fs::path(told[0]).parent_path(), folder);
  EXPECT_EQ(told[1], "");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(FileBytesTest, AFileThatCannotBeMadeLeavesNothing) {
  EXPECT_FALSE(write_file_bytes(folder / "none" / "x", bytes_of("new")));
  EXPECT_FALSE(write_file_bytes(folder / std::string(256, 'x'), bytes_of("new")));
  EXPECT_FALSE(write_file_bytes("", bytes_of("new")));
  EXPECT_EQ(num_files(), 0U);
}

TEST_F(FileBytesTest, WhatNeverEndsIsReadAsFarAsItsFormatGoes) {
  const auto other = read_file_bytes("/dev/zero", {.magic = "CINCH"});
  ASSERT_TRUE(other);
  EXPECT_EQ(other->size(), std::size_t{1} << 16);
  const auto larger =
      read_file_bytes("/dev/zero", {.magic = {}, .size_at = {}, .most_bytes = 1000});
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().message, "cannot read '/dev/zero': more than 1000 bytes");
  EXPECT_FALSE(read_text_file("/dev/zero"));
}

TEST_F(FileBytesTest, APipeIsReadNoFurtherThanTheSizeThatItNames) {
  const std::filesystem::path path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::string text(std::size_t{1} << 20, 'x');
  const std::uint64_t size_bytes = 100000;
  std::memcpy(text.data() + 3, &size_bytes, sizeof size_bytes);
  std::jthread writer([&] { (void)write_file_bytes(path, bytes_of(text)); });
  const auto bytes = read_file_bytes(path, {.magic = "x", .size_at = 3});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), size_bytes + 1);
}

TEST_F(FileBytesTest, ReadsWhatWasWritten) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{65536}, std::size_t{3000001}}) {
    const std::string text(size, 'x');
    ASSERT_TRUE(write_file_bytes(folder / "x", bytes_of(text)));
    EXPECT_EQ(read_text_file(folder / "x").value(), text);
    EXPECT_EQ(
        read_file_bytes(folder / "x", {.magic = {}, .size_at = {}, .most_bytes = size})->size(),
        size);
  }
}

}  // namespace
}  // namespace cinch::rt
