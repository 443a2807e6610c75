// Counts the decision tree's options: the numbers in the paper's figure.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "tests/unit/runtime/planner/plan_request.h"

namespace cinch::rt {
namespace {

using Counts = std::array<std::size_t, 5>;

Counts by_compressions(const std::vector<ExchangeOption>& options) {
  Counts counts{};
  for (const ExchangeOption& option : options) ++counts.at(num_compressions(option));
  return counts;
}

bool is_flat(const ExchangeOption& option) {
  return std::ranges::none_of(
      option, [](const OptionStep& step) { return step.scope != OptionScope::Flat; });
}

TEST(ExchangeOptions, AreAsManyAsTheTreeHas) {
  const auto both = all_exchange_options();
  EXPECT_EQ(both.size(), 4341u);
  EXPECT_EQ(std::ranges::count_if(both, is_flat), 63);
  EXPECT_EQ(by_compressions(both), (Counts{9, 236, 1152, 1920, 1024}));
  const auto on_gpus = all_exchange_options({.has_cpu = false});
  EXPECT_EQ(on_gpus.size(), 174u);
  EXPECT_EQ(std::ranges::count_if(on_gpus, is_flat), 12);
  EXPECT_EQ(by_compressions(on_gpus), (Counts{9, 59, 72, 30, 4}));
}

TEST(ExchangeOptions, AreDifferent) {
  std::set<std::string> texts;
  for (const ExchangeOption& option : all_exchange_options()) texts.insert(describe_option(option));
  EXPECT_EQ(texts.size(), 4341u);
}

TEST(ExchangeOptions, KeepToOneKindOfDeviceInSome) {
  const auto uses_one_kind = [](const ExchangeOption& option) {
    std::set<OptionDevice> devices;
    for (const OptionStep& step : option) {
      const bool computes =
          step.action == OptionAction::Compress || step.action == OptionAction::Decompress;
      if (computes) devices.insert(step.device);
    }
    return devices.size() <= 1;
  };
  EXPECT_EQ(std::ranges::count_if(all_exchange_options(), uses_one_kind), 339);
}

TEST(ExchangeOptions, CompressNoMoreOftenThanAllowed) {
  EXPECT_EQ(all_exchange_options({.most_compressions = 0}).size(), 9u);
  EXPECT_EQ(all_exchange_options({.most_compressions = 1}).size(), 245u);
  EXPECT_EQ(all_exchange_options({.most_compressions = 2}).size(), 1397u);
  EXPECT_EQ(all_exchange_options({.has_cpu = false, .most_compressions = 1}).size(), 68u);
  EXPECT_EQ(all_exchange_options({.has_cpu = false, .most_compressions = 2}).size(), 140u);
}

// Compressed data are decompressed before the end, and nothing else is.
TEST(ExchangeOptions, EndWithRawValues) {
  for (const ExchangeOption& option : all_exchange_options()) {
    bool is_compressed = false;
    for (const OptionStep& step : option) {
      if (step.action == OptionAction::Compress) {
        ASSERT_FALSE(is_compressed) << describe_option(option);
        is_compressed = true;
      } else if (step.action == OptionAction::Decompress) {
        ASSERT_TRUE(is_compressed) << describe_option(option);
        is_compressed = false;
      } else {
        ASSERT_EQ(step.is_compressed, is_compressed) << describe_option(option);
      }
    }
    ASSERT_FALSE(is_compressed) << describe_option(option);
  }
}

TEST(ExchangeOptions, TellsWhereRanksCompressCopies) {
  EXPECT_FALSE(compresses_copies(usual_hierarchical_option()));
  // What a program with random draws gave ranks different updates under, and did not.
  for (const char* text :
       {"reduce_scatter intra, compress gpu, all_gather inter of payloads, decompress gpu, "
        "compress "
        "gpu, all_gather intra of payloads, decompress gpu",
        "compress gpu, all_to_all intra of payloads, all_gather inter of payloads, decompress gpu, "
        "compress gpu, all_gather intra of payloads, decompress gpu"}) {
    EXPECT_TRUE(compresses_copies(*option_described(text))) << text;
  }
  EXPECT_FALSE(compresses_copies(*option_described(
      "compress gpu, all_to_all intra of payloads, decompress gpu, compress gpu, all_gather inter "
      "of payloads, all_gather intra of payloads, decompress gpu")));
}

TEST(ExchangeOptions, AreDescribed) {
  EXPECT_EQ(describe_option(all_exchange_options().front()), "all_reduce flat");
  EXPECT_EQ(describe_option(all_exchange_options().back()),
            "compress cpu, gather intra of payloads, decompress cpu, compress cpu, gather inter of "
            "payloads, decompress cpu, compress cpu, broadcast inter of payloads, decompress cpu, "
            "compress cpu, broadcast intra of payloads, decompress cpu");
}

}  // namespace
}  // namespace cinch::rt
