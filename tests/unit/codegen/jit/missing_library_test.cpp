// Without the compiler library there is an error that says where it was looked for. A program of
// its own: the library is opened once per process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "codegen/jit/clang_jit.h"

namespace cinch::codegen {
namespace {

TEST(MissingLibrary, IsAnErrorThatNamesThePlace) {
  ::setenv("CINCH_CLANG_LIBRARY", "/nowhere/libcinch_clang.so", 1);
  const auto bytes = compile_cpu({{TargetKind::Cpu, "x86-64"}, "int x;", {}});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().kind, rt::ErrorKind::Unavailable);
  EXPECT_THAT(bytes.error().message, testing::HasSubstr("/nowhere/libcinch_clang.so"));
  EXPECT_FALSE(format_source("int x;"));
  EXPECT_FALSE(find_clang());
}

}  // namespace
}  // namespace cinch::codegen
