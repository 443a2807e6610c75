// Ranks that meet, stop, leave, disagree and are cancelled: all of them end, with the same answer.
#include "runtime/collective/rank_meeting.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace cinch::rt {
namespace {

constexpr CollectiveInfo kSum{CollectiveKind::AllReduce, RankReduction::Sum};

// An all-reduce of one float.
Result<RankStatus> sum(RankExchange& ranks, float value, float& total) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
  auto* to = reinterpret_cast<std::uint8_t*>(&total);
  return ranks.exchange({kSum, kF32, {from, sizeof value}, {to, sizeof total}});
}

TEST(RankMeeting, ManyExchangesOfManyRanks) {
  constexpr std::uint32_t kWorld = 7;
  std::vector<float> totals(kWorld);
  std::vector<char> ok(kWorld, 0);  // a byte each: threads write them at once
  std::mutex mutex;
  run_rank_threads(kWorld, nullptr, [&](std::uint32_t rank, RankExchange& ranks) {
    float total = static_cast<float>(rank);
    bool good = true;
    for (int round = 0; round < 200; ++round) {
      const float value = round == 0 ? total : total / kWorld;
      const auto all = sum(ranks, value, total);
      good = good && all && *all == RankStatus::Good;
    }
    const auto end = ranks.agree(RankStatus::Good);
    const std::lock_guard lock(mutex);
    totals[rank] = total;
    ok[rank] = good && end && *end == RankStatus::Good ? 1 : 0;
  });
  for (std::uint32_t rank = 0; rank < kWorld; ++rank) {
    EXPECT_EQ(ok[rank], 1);
    EXPECT_EQ(totals[rank], totals[0]);
    EXPECT_NEAR(totals[rank], 21, 1e-3);
  }
}

// One rank stops before the exchange that the others are at; the worst status reaches all, and
// nothing is written.
TEST(RankMeeting, TheWorstStatusReachesAll) {
  for (const bool also_non_finite : {false, true}) {
    std::vector<RankStatus> found(4, RankStatus::Good);
    std::vector<float> totals(4, -1);
    run_rank_threads(4, nullptr, [&](std::uint32_t rank, RankExchange& ranks) {
      if (rank == 2) {
        found[rank] = ranks.agree(RankStatus::Failed).value();
      } else if (rank == 3 && also_non_finite) {
        found[rank] = ranks.agree(RankStatus::NonFinite).value();
      } else {
        found[rank] = sum(ranks, 1, totals[rank]).value();
      }
    });
    const RankStatus expected = also_non_finite ? RankStatus::NonFinite : RankStatus::Failed;
    EXPECT_EQ(found, std::vector<RankStatus>(4, expected));
    EXPECT_EQ(totals, std::vector<float>(4, -1));
  }
}

TEST(RankMeeting, ARankThatLeavesIsNotWaitedFor) {
  std::vector<char> failed(3, 0);
  run_rank_threads(3, nullptr, [&](std::uint32_t rank, RankExchange& ranks) {
    if (rank == 1) return;
    float total = 0;
    const auto all = sum(ranks, 1, total);
    failed[rank] = !all && all.error().kind == ErrorKind::Cancelled ? 1 : 0;
  });
  EXPECT_EQ(failed[0], 1);
  EXPECT_EQ(failed[2], 1);
}

TEST(RankMeeting, DifferentCollectivesAreAnErrorOfAll) {
  std::vector<char> failed(2, 0);
  run_rank_threads(2, nullptr, [&](std::uint32_t rank, RankExchange& ranks) {
    const double wide = 1;
    double total = 0;
    const auto all = rank == 0 ? sum(ranks, 1, *reinterpret_cast<float*>(&total))
                               : ranks.exchange({kSum,
                                                 kF64,
                                                 {reinterpret_cast<const std::uint8_t*>(&wide), 8},
                                                 {reinterpret_cast<std::uint8_t*>(&total), 8}});
    failed[rank] = !all && all.error().kind == ErrorKind::Internal ? 1 : 0;
  });
  EXPECT_EQ(failed[0], 1);
  EXPECT_EQ(failed[1], 1);
  run_rank_threads(2, nullptr, [&](std::uint32_t rank, RankExchange& ranks) {
    float total = 0;
    const auto all = rank == 0 ? sum(ranks, 1, total) : ranks.agree(RankStatus::Good);
    failed[rank] = !all && all.error().kind == ErrorKind::Internal ? 1 : 0;
  });
  EXPECT_EQ(failed[0], 1);
  EXPECT_EQ(failed[1], 1);
}

TEST(RankMeeting, CancellingEndsTheWait) {
  std::atomic<bool> cancelled = false;
  RankMeeting meeting(2, &cancelled);
  std::optional<ErrorKind> found;
  std::thread waiting([&] {
    float total = 0;
    const auto all = sum(meeting.door(0), 1, total);
    if (!all) found = all.error().kind;
  });
  cancelled = true;
  waiting.join();
  EXPECT_EQ(found, ErrorKind::Cancelled);
}

TEST(LoneRank, GetsWhatItPutsIn) {
  LoneRank ranks;
  float total = 0;
  EXPECT_EQ(sum(ranks, 2.5f, total).value(), RankStatus::Good);
  EXPECT_EQ(total, 2.5f);
  EXPECT_EQ(ranks.agree(RankStatus::NonFinite).value(), RankStatus::NonFinite);
}

}  // namespace
}  // namespace cinch::rt
