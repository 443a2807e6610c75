// The search for similar names.
#include "runtime/core/nearest_name.h"

#include <gtest/gtest.h>

namespace cinch {
namespace {

TEST(NearestNameTest, FindsSlipsOfTheFinger) {
  EXPECT_EQ(nearest_name("siz", {"state", "size"}), "size");
  EXPECT_EQ(nearest_name("sacn", {"scan", "sum"}), "scan");
  EXPECT_EQ(nearest_name("histgoram", {"histogram", "hadamard"}), "histogram");
}

TEST(NearestNameTest, FindsNothingWhenAllAreFar) {
  EXPECT_EQ(nearest_name("banana", {"state", "size"}), "");
  EXPECT_EQ(nearest_name("x", {"y"}), "");
  EXPECT_EQ(nearest_name("", {"a"}), "");
  EXPECT_EQ(nearest_name("same", {"same"}), "");
}

TEST(NearestNameTest, TiesGoToTheEarlier) {
  EXPECT_EQ(nearest_name("bat", {"cat", "hat"}), "cat");
}

}  // namespace
}  // namespace cinch
