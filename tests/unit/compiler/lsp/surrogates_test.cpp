// Halves of UTF-16 pairs in JSON.
#include "compiler/lsp/protocol/json.h"

#include <gtest/gtest.h>

namespace cinch::lsp {
namespace {

TEST(SurrogatesTest, ReplacesHalvesThatStandAlone) {
  EXPECT_EQ(without_lone_surrogates(R"("a\ud83d")"), R"("a\ufffd")");
  EXPECT_EQ(without_lone_surrogates(R"("\uDE00b")"), R"("\ufffdb")");
  EXPECT_EQ(without_lone_surrogates(R"("\ud83d\ud83d\ude00\ud83d")"),
            R"("\ufffd\ud83d\ude00\ufffd")");
  EXPECT_EQ(without_lone_surrogates(R"("\ud83dx\ude00")"), R"("\ufffdx\ufffd")");
  EXPECT_EQ(without_lone_surrogates("\"\xED\xA0\xBD\""), "\"\xEF\xBF\xBD\"");
}

TEST(SurrogatesTest, KeepsEverythingElse) {
  for (const char* text :
       {R"("\ud83d\ude00")", R"("\\ud83d")", R"("\\\\ud83d \n \u00e9")", R"("\u")", R"("\)",
        R"("\ud83)", "\"\xED\x9F\xBF \xF0\x9F\x98\x80 \xED", ""}) {
    EXPECT_EQ(without_lone_surrogates(text), text);
  }
}

}  // namespace
}  // namespace cinch::lsp
