// The search for tuning numbers, over workloads whose times are known.
#include "compiler/bench/tuning_search.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cinch::bench {
namespace {

using Workloads = std::vector<TuningWorkload<rt::CpuTuning>>;

TuningWorkload<rt::CpuTuning> workload(const std::function<double(const rt::CpuTuning&)>& ms) {
  return [ms](const rt::CpuTuning& tuning) { return [ms, tuning] { return ms(tuning); }; };
}

double distance(std::int64_t value, double exponent) {
  return std::abs(std::log2(static_cast<double>(value)) - exponent);
}

const TuningSearchOptions kQuick{.seconds = 0};

TEST(TuningSearchTest, finds_the_fastest_value_of_each_number) {
  std::size_t last = 0, total = 0;
  TuningSearchOptions options = kQuick;
  options.progress = [&](std::size_t done, std::size_t of) {
    EXPECT_EQ(done, ++last);
    total = of;
  };
  const auto tuned = search_tuning<rt::CpuTuning>(
      {},
      {workload([](const rt::CpuTuning& tuning) {
         return 10 + distance(tuning.task_bytes, 16) + distance(tuning.tasks_per_thread, 4);
       }),
       workload([](const rt::CpuTuning&) { return 3.0; })},
      options);
  EXPECT_EQ(tuned.numbers.task_bytes, 1 << 16);
  EXPECT_EQ(tuned.numbers.tasks_per_thread, 16);
  EXPECT_EQ(tuned.numbers.single_task_bytes, rt::CpuTuning{}.single_task_bytes);
  EXPECT_EQ(last, total);
  EXPECT_NEAR(tuned.ratio, std::sqrt(10.0 / 13.0), 1e-9);
  ASSERT_EQ(tuned.by_number.size(), rt::tuning_numbers<rt::CpuTuning>().size());
  const TunedNumber& number = tuned.by_number[0];
  EXPECT_STREQ(number.name, "task_bytes");
  EXPECT_EQ(number.before, 1 << 18);
  EXPECT_EQ(number.after, 1 << 16);
  ASSERT_EQ(number.tried.size(), 6u);
  EXPECT_EQ(number.tried[0].value, 1 << 15);
  EXPECT_NEAR(number.tried[0].ratio, std::sqrt(12.0 / 13.0), 1e-9);
}

TEST(TuningSearchTest, a_value_in_use_that_is_no_candidate_is_measured_too) {
  rt::CpuTuning before;
  before.task_bytes = 12345;
  const auto tuned = search_tuning<rt::CpuTuning>(
      before, {workload([](const rt::CpuTuning&) { return 1.0; })}, kQuick);
  EXPECT_EQ(tuned.numbers, before);
  EXPECT_EQ(tuned.by_number[0].tried.size(), 7u);
  EXPECT_EQ(tuned.ratio, 1);
}

TEST(TuningSearchTest, what_saves_less_than_noise_is_left_alone) {
  const auto tuned = search_tuning<rt::CpuTuning>(
      {}, {workload([](const rt::CpuTuning& tuning) {
        return tuning.task_bytes == 1 << 15 ? 1 - kWorthwhileSaving / 2 : 1.0;
      })},
      kQuick);
  EXPECT_EQ(tuned.numbers, rt::CpuTuning{});
}

// Each faster by itself, slower together.
TEST(TuningSearchTest, numbers_that_are_not_faster_in_the_end_are_dropped) {
  int turn = 0;
  const auto tuned = search_tuning<rt::CpuTuning>(
      {}, {[&](const rt::CpuTuning& tuning) {
        const bool is_other = tuning.task_bytes != rt::CpuTuning{}.task_bytes;
        // The two of the last comparison come behind six, seven and seven others.
        const bool is_last = ++turn > 6 + 6 + 7;
        return [=] { return !is_other ? 1.0 : is_last ? 1.5 : 0.5; };
      }},
      kQuick);
  EXPECT_EQ(tuned.numbers, rt::CpuTuning{});
  EXPECT_EQ(tuned.by_number[0].after, 1 << 15);
  EXPECT_NEAR(tuned.ratio, 1.5, 1e-9);
}

TEST(TuningSearchTest, takes_the_numbers_of_gpus) {
  const auto tuned =
      search_tuning<rt::GpuTuning>({}, {[](const rt::GpuTuning& tuning) {
                                     return [=] { return static_cast<double>(tuning.block_warps); };
                                   }},
                                   kQuick);
  EXPECT_EQ(tuned.numbers.block_warps, 2);
}

}  // namespace
}  // namespace cinch::bench
