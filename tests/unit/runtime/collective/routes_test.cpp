// Routed collectives: the parts of the output, zeros after them, the count, and the same error on
// every rank.
#include "runtime/collective/join_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/collective/rank_meeting.h"

namespace cinch::rt {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<RankOffer> offers(const std::vector<std::uint64_t>& to, std::uint64_t bytes = 8) {
  std::vector<RankOffer> all;
  all.reserve(to.size());
  for (const std::uint64_t rank : to) all.push_back({rank, bytes, bytes});
  return all;
}

CollectiveCall call_of(CollectiveKind kind) {
  CollectiveCall call{{kind}, kU32, {}, {}};
  call.place = "here";
  return call;
}

std::string fault_of(CollectiveKind kind, const std::vector<RankOffer>& all) {
  std::string first;
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    const auto parts = received_parts(call_of(kind), all, rank);
    if (parts) return "";
    if (rank == 0) first = parts.error().message;
    EXPECT_EQ(parts.error().message, first);
  }
  return first;
}

TEST(Routes, EveryRankReceivesFromOne) {
  const auto all = offers({2, 0, 1});
  const ByteRange nothing{}, whole{0, 8};
  EXPECT_THAT(received_parts(call_of(CollectiveKind::SendReceive), all, 0).value(),
              ElementsAre(nothing, whole, nothing));
  EXPECT_THAT(received_parts(call_of(CollectiveKind::SendReceive), all, 1).value(),
              ElementsAre(nothing, nothing, whole));
  EXPECT_THAT(received_parts(call_of(CollectiveKind::SendReceive), offers({0, 1}), 1).value(),
              ElementsAre(nothing, whole));
}

TEST(Routes, CountedArraysLieInRankOrder) {
  const std::vector<RankOffer> all = {{0, 4, 16}, {0, 0, 16}, {0, 12, 16}};
  EXPECT_THAT(received_parts(call_of(CollectiveKind::AllGatherCounted), all, 1).value(),
              ElementsAre(ByteRange{0, 4}, ByteRange{4, 0}, ByteRange{4, 12}));
}

TEST(Routes, AllRanksFindTheSameFault) {
  EXPECT_THAT(fault_of(CollectiveKind::SendReceive, offers({0, 3, 1})),
              HasSubstr("here: rank 1 sends to rank 3 of 3"));
  EXPECT_THAT(fault_of(CollectiveKind::SendReceive, offers({0, UINT32_MAX - 6, 1})),
              HasSubstr("here: rank 1 sends to rank -7 of 3"));
  EXPECT_THAT(fault_of(CollectiveKind::SendReceive, offers({1, 0, 1})),
              HasSubstr("ranks 0 and 2 both send to rank 1"));
  std::vector<RankOffer> short_one = offers({1, 0});
  short_one[0].sent_bytes = 4;
  EXPECT_THAT(fault_of(CollectiveKind::SendReceive, short_one), HasSubstr("longer"));
  EXPECT_EQ(fault_of(CollectiveKind::SendReceiveCounted, short_one), "");
  short_one[1].sent_bytes = 12;
  EXPECT_THAT(fault_of(CollectiveKind::SendReceiveCounted, short_one), HasSubstr("longer"));
  EXPECT_THAT(fault_of(CollectiveKind::AllGatherCounted, {{0, 4, 8}, {0, 8, 8}}),
              HasSubstr("longer"));
}

TEST(Routes, AllRanksNameOneRoot) {
  const ByteRange nothing{}, whole{0, 8};
  EXPECT_THAT(received_parts(call_of(CollectiveKind::BroadcastFrom), offers({2, 2, 2}), 0).value(),
              ElementsAre(nothing, nothing, whole));
  EXPECT_THAT(fault_of(CollectiveKind::BroadcastFrom, offers({3, 3, 3})),
              HasSubstr("here: there is no rank 3 of 3"));
  EXPECT_THAT(fault_of(CollectiveKind::BroadcastFrom, offers({1, 0, 1})),
              HasSubstr("here: rank 0 names rank 1, rank 1 names rank 0"));
  std::vector<RankOffer> short_one = offers({1, 1});
  short_one[0].room_bytes = 4;
  EXPECT_THAT(fault_of(CollectiveKind::BroadcastFrom, short_one), HasSubstr("longer"));
}

// Rank r has r elements of 10 r, 10 r + 1, …, and room for six.
struct Counted {
  explicit Counted(std::uint32_t rank) : values(rank), output(6, 77) {
    for (std::uint32_t i = 0; i < rank; ++i) values[i] = 10 * rank + i;
  }
  Result<RankStatus> exchange(CollectiveKind kind, std::uint32_t to, RankExchange& ranks) {
    CollectiveCall call{{kind}, kU32, bytes_of(values), bytes_of(output)};
    call.to = to;
    call.element_bytes = 4;
    call.received = {reinterpret_cast<std::uint8_t*>(&count), sizeof count};
    return ranks.exchange(call);
  }
  static std::span<std::uint8_t> bytes_of(std::vector<std::uint32_t>& words) {
    return {reinterpret_cast<std::uint8_t*>(words.data()), 4 * words.size()};
  }
  std::vector<std::uint32_t> values, output;
  std::uint32_t count = 0;
};

TEST(Routes, ThreadsMeetWithArraysOfTheirOwnLengths) {
  std::vector<std::vector<std::uint32_t>> gathered(4), sent(4);
  std::vector<std::uint32_t> counts(4), sent_counts(4);
  run_rank_threads(4, nullptr, [&](std::uint32_t rank, RankExchange& ranks) {
    Counted all(rank), ring(rank);
    EXPECT_EQ(all.exchange(CollectiveKind::AllGatherCounted, 0, ranks).value(), RankStatus::Good);
    EXPECT_EQ(ring.exchange(CollectiveKind::SendReceiveCounted, (rank + 1) % 4, ranks).value(),
              RankStatus::Good);
    gathered[rank] = all.output, counts[rank] = all.count;
    sent[rank] = ring.output, sent_counts[rank] = ring.count;
  });
  for (const auto& each : gathered) EXPECT_THAT(each, ElementsAre(10, 20, 21, 30, 31, 32));
  EXPECT_THAT(counts, ElementsAre(6, 6, 6, 6));
  EXPECT_THAT(sent[0], ElementsAre(30, 31, 32, 0, 0, 0));
  EXPECT_THAT(sent[1], ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(sent[3], ElementsAre(20, 21, 0, 0, 0, 0));
  EXPECT_THAT(sent_counts, ElementsAre(3, 0, 1, 2));
}

TEST(Routes, ThreadsThatDisagreeAllFail) {
  std::vector<char> failed(3, 0);
  run_rank_threads(3, nullptr, [&](std::uint32_t rank, RankExchange& ranks) {
    Counted one(rank);
    const auto all = one.exchange(CollectiveKind::SendReceiveCounted, rank / 2, ranks);
    failed[rank] = !all && all.error().kind == ErrorKind::CheckFailed ? 1 : 0;
  });
  EXPECT_THAT(failed, ElementsAre(1, 1, 1));
}

TEST(Routes, ALoneRankSendsToItself) {
  LoneRank ranks;
  Counted one(2);
  EXPECT_EQ(one.exchange(CollectiveKind::SendReceiveCounted, 0, ranks).value(), RankStatus::Good);
  EXPECT_THAT(one.output, ElementsAre(20, 21, 0, 0, 0, 0));
  EXPECT_EQ(one.count, 2);
  EXPECT_FALSE(one.exchange(CollectiveKind::SendReceiveCounted, 1, ranks));
}

TEST(Routes, ScalarsAreReadFromTheStepsBuffers) {
  std::vector<std::uint32_t> values(4);
  std::vector<std::uint32_t> output(4);
  const BufferIndex scalars[] = {7, 9, 8};
  const auto read = [](BufferIndex buffer) -> Result<std::uint32_t> { return buffer - 6; };
  CollectiveCall call{{CollectiveKind::SendReceiveCounted},
                      kU32,
                      Counted::bytes_of(values),
                      Counted::bytes_of(output)};
  ASSERT_TRUE(take_scalars(scalars, 32, read, call));
  EXPECT_EQ(call.to, 1);
  EXPECT_EQ(call.element_bytes, 4);
  EXPECT_EQ(call.input.size(), 12);
  EXPECT_FALSE(take_scalars(scalars, 64, read, call));
}

}  // namespace
}  // namespace cinch::rt
