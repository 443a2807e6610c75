// Profiles: what they hold, and what they cannot.
#include "runtime/planner/ready_profile.h"

#include <gtest/gtest.h>

namespace cinch::rt {
namespace {

ReadyProfile profile_of(std::string_view text) {
  const auto profile = parse_profile("p", text);
  EXPECT_TRUE(profile) << profile.error().message;
  return profile ? *profile : ReadyProfile{};
}

void expect_refused(std::string_view text, std::string_view message) {
  const auto profile = parse_profile("p", text);
  ASSERT_FALSE(profile) << text;
  EXPECT_EQ(profile.error().kind, ErrorKind::CorruptFile);
  EXPECT_EQ(profile.error().message, message);
}

TEST(ReadyProfile, CsvAndJsonSayTheSame) {
  const ReadyProfile csv = profile_of(
      "# of a made-up model\n# forward_us 1500\n#optimizer_us   20\n"
      "name, shape, ready_us, spread_us, note\nfc.weight,10x20,100,3.5,x\nfc.bias,10,250,0,y\n");
  const ReadyProfile json = profile_of(
      R"({"forward_us": 1500, "optimizer_us": 20, "tensors": [
          {"name": "fc.weight", "shape": [10, 20], "ready_us": 100, "spread_us": 3.5},
          {"name": "fc.bias", "shape": [10], "numel": 10, "ready_gap_us": 150}]})");
  for (const ReadyProfile& profile : {csv, json}) {
    EXPECT_DOUBLE_EQ(profile.forward_seconds.value(), 1.5e-3);
    EXPECT_DOUBLE_EQ(profile.optimizer_seconds.value(), 20e-6);
    ASSERT_EQ(profile.tensors.size(), 2u);
    EXPECT_EQ(profile.tensors[0].shape, (std::vector<std::int64_t>{10, 20}));
    EXPECT_EQ(profile.tensors[0].num_elems, 200);
    EXPECT_DOUBLE_EQ(profile.tensors[0].spread_seconds, 3.5e-6);
    EXPECT_EQ(profile.tensors[1].num_elems, 10);
    EXPECT_DOUBLE_EQ(profile.tensors[1].ready_seconds, 250e-6);
  }
}

TEST(ReadyProfile, TimesAndShapesMayBeMissing) {
  const ReadyProfile profile = profile_of("name,numel,ready_gap_us\na,5,7\nb,0,0\n");
  EXPECT_FALSE(profile.forward_seconds || profile.optimizer_seconds);
  EXPECT_TRUE(profile.tensors[0].shape.empty());
  EXPECT_EQ(profile_of(R"([{"name": "s", "shape": [], "ready_us": 0}])").tensors[0].num_elems, 1);
}

TEST(ReadyProfile, WhatIsWrongIsToldWithItsPlace) {
  expect_refused("", "p: a profile without tensors");
  expect_refused("name,numel,ready_us\na,5,1\na,5,2", "p:3: a is there twice");
  expect_refused(std::string_view("name,numel,ready_us\na\0b,5,1", 27),
                 "p:2: the name a\\x00b has a control character");
  expect_refused("name,numel,ready_us\na,5,nan", "p:2: a has a time that is not a finite number");
  expect_refused("name,numel,ready_us\na,5,-1",
                 "p:2: a is ready before time 0: times are not negative");
  expect_refused("name,numel,shape,ready_us\na,5,2x3,1", "p:2: a has 5 elements, and a shape of 6");
  expect_refused("name,shape,ready_us\na,2x,1", "p:2: shape is '', which is not a number");
  expect_refused("name,shape,ready_us\na,2x-3,1", "p:2: a has no such shape");
  expect_refused("name,shape,ready_us\na,100000x100000,1", "p:2: a has too many elements");
  expect_refused("name,numel,ready_us,spread_us\na,5,1,-2", "p:2: a has a spread that is no time");
  expect_refused("# forward_us soon\nname,numel,ready_us\na,5,1",
                 "p:1: forward_us is 'soon', which is not a number");
  expect_refused(R"({"forward_us": -1, "tensors": [{"name": "a", "numel": 1, "ready_us": 0}]})",
                 "p: forward_us is no time of at most an hour");
  expect_refused(R"([{"name": "a", "shape": ["x"], "ready_us": 0}])",
                 "p: entry 0: shape is not a list of numbers");
  expect_refused(R"({"model": "x"})", "p: not a JSON array of tensors");
}

TEST(ReadyProfile, ManyTensorsAreRead) {
  std::string text = "name,numel,ready_gap_us\n";
  for (int i = 0; i < 200'000; ++i) text += "t" + std::to_string(i) + ",1,0.001\n";
  EXPECT_EQ(profile_of(text).tensors.size(), 200'000u);
}

}  // namespace
}  // namespace cinch::rt
