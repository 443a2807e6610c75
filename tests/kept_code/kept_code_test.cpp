// The store of compiled code that other tests use, through the same interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/jit/clang_jit.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

namespace fs = std::filesystem;

// Code for the lowest level, which every machine here has.
KernelSource source_of(const std::string& text) {
  KernelSource source;
  source.text = text;
  source.target.arch = "x86-64";
  source.symbols = {"answer"};
  return source;
}

const char* const kText =
    "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }\n";

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path());
  return found;
}

// The first call opens the library: all tests of this process use one folder.
fs::path store() {
  static const fs::path kFolder = [] {
    const fs::path folder = fs::path(::testing::TempDir()) / "cinch_kept_code_test";
    fs::remove_all(folder);
    ::setenv("CINCH_CLANG_LIBRARY", CINCH_KEPT_CODE, 1);
    ::setenv("CINCH_KEPT_CODE", folder.c_str(), 1);
    return folder;
  }();
  return kFolder;
}

TEST(KeptCode, IsMadeOnce) {
  const fs::path folder = store();
  const auto first = compile_cpu(source_of(kText));
  ASSERT_TRUE(first) << first.error().message;
  const auto found = entries(folder);
  ASSERT_EQ(found.size(), 1u);
  const auto written = fs::last_write_time(found[0]);
  const auto second = compile_cpu(source_of(kText));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(entries(folder), found);
  EXPECT_EQ(fs::last_write_time(found[0]), written);
  fs::remove(found[0]);
}

TEST(KeptCode, OtherTextIsOtherCode) {
  const fs::path folder = store();
  const auto first = compile_cpu(source_of(kText));
  const auto second = compile_cpu(source_of(
      "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 41; }\n"));
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(entries(folder).size(), 2u);
  for (const fs::path& entry : entries(folder)) fs::remove(entry);
}

TEST(KeptCode, DamagedEntriesAreMadeAgain) {
  const fs::path folder = store();
  const auto first = compile_cpu(source_of(kText));
  ASSERT_TRUE(first);
  const fs::path entry = entries(folder).at(0);
  const auto size = fs::file_size(entry);
  for (const bool is_cut : {true, false}) {
    if (is_cut) {
      fs::resize_file(entry, size / 2);
    } else {
      std::fstream file(entry, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(size / 2));
      file.write("damaged", 7);
    }
    const auto again = compile_cpu(source_of(kText));
    ASSERT_TRUE(again);
    EXPECT_EQ(*first, *again);
    EXPECT_EQ(fs::file_size(entry), size);
  }
  fs::remove(entry);
}

TEST(KeptCode, FailuresAreNotKept) {
  store();
  for (int i = 0; i < 2; ++i) {
    try {
      (void)compile_cpu(source_of("int answer( {"));
      ADD_FAILURE() << "compiled";
    } catch (const InternalError& error) {
      EXPECT_THAT(std::string(error.what()), ::testing::HasSubstr("expected"));
    }
  }
}

}  // namespace
}  // namespace cinch::codegen
