// Pieces of flat buffers: their places, pieces that do not fit, payloads moved together.
#include "runtime/call/list_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace cinch::rt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Bucket, TensorsLieAtTheirOffsetsOrOneBehindTheOther) {
  std::vector<std::uint16_t> flat(100);
  const std::vector<std::int64_t> sizes = {10, 0, 30};
  std::vector<TensorView> tensors;
  ASSERT_TRUE(bucket_tensors({flat.data(), kF16, 100, {}}, sizes, tensors));
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].data, flat.data());
  EXPECT_EQ(tensors[2].data, flat.data() + 10);
  EXPECT_EQ(tensors[2].num_elems, 30);
  EXPECT_EQ(tensors[2].dtype, kF16);
  const std::vector<std::int64_t> offsets = {90, 100, 3};
  ASSERT_TRUE(bucket_tensors({flat.data(), kF16, 100, offsets}, sizes, tensors));
  EXPECT_EQ(tensors[0].data, flat.data() + 90);
  EXPECT_EQ(tensors[2].data, flat.data() + 3);
}

TEST(Bucket, WhatDoesNotLieInItIsRefused) {
  std::vector<float> flat(100);
  std::vector<TensorView> tensors;
  const auto refused = [&](std::vector<std::int64_t> offsets, std::vector<std::int64_t> sizes) {
    const auto status = bucket_tensors({flat.data(), kF32, 100, offsets}, sizes, tensors);
    EXPECT_FALSE(status);
    return status ? ListError{} : status.error();
  };
  EXPECT_EQ(refused({0, 91}, {10, 10}).place, 1u);
  EXPECT_EQ(refused({0, 91}, {10, 10}).error.kind, ErrorKind::OutOfRange);
  EXPECT_EQ(refused({-1}, {1}).place, 0u);
  EXPECT_EQ(refused({101}, {0}).place, 0u);
  EXPECT_EQ(refused({INT64_MAX}, {5}).place, 0u);
  EXPECT_EQ(refused({}, {50, 51}).place, 1u);
  EXPECT_EQ(refused({0}, {1, 1}).error.kind, ErrorKind::InvalidArgument);
  EXPECT_FALSE(bucket_tensors({flat.data(), kU8, 100, {}}, {}, tensors));
}

TEST(Bucket, PayloadsMoveTogether) {
  std::vector<std::uint8_t> memory(500, 0xee);
  std::vector<std::size_t> offsets(4), sizes(4);
  const PayloadArena arena{memory.data(), 320, offsets, sizes};
  const std::vector<std::size_t> bounds = {100, 16, 81, 90};
  EXPECT_EQ(*arena_bytes(bounds), 112u + 16 + 96 + 96);
  std::vector<std::span<std::uint8_t>> rooms;
  ASSERT_TRUE(arena_rooms(arena, bounds, rooms));
  EXPECT_THAT(offsets, ElementsAre(0, 112, 128, 224));
  std::vector<std::vector<std::uint8_t>> written;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    EXPECT_EQ(rooms[i].size(), bounds[i]);
    sizes[i] = std::vector<std::size_t>{70, 16, 1, 90}[i];
    std::iota(rooms[i].begin(), rooms[i].begin() + static_cast<std::ptrdiff_t>(sizes[i]),
              static_cast<std::uint8_t>(50 * i));
    written.emplace_back(rooms[i].begin(),
                         rooms[i].begin() + static_cast<std::ptrdiff_t>(sizes[i]));
  }
  EXPECT_EQ(close_arena(arena), 112u + 90);
  EXPECT_THAT(offsets, ElementsAre(0, 80, 96, 112));
  EXPECT_THAT(std::span(memory).subspan(70, 10), testing::Each(0));
  EXPECT_THAT(std::span(memory).subspan(97, 15), testing::Each(0));
  std::vector<PayloadBytes> pieces;
  ASSERT_TRUE(arena_payloads(arena, pieces));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(std::vector(pieces[i].begin(), pieces[i].end()), written[i]) << i;
  }
}

TEST(Bucket, ArenasThatAreTooSmallAreRefused) {
  std::vector<std::uint8_t> memory(300);
  std::vector<std::size_t> offsets(2), sizes(2);
  PayloadArena arena{memory.data(), 300, offsets, sizes};
  std::vector<std::span<std::uint8_t>> rooms;
  const Status status = arena_rooms(arena, std::vector<std::size_t>{200, 100}, rooms);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("may take 320 bytes, there are 300"));
  EXPECT_FALSE(arena_rooms(arena, std::vector<std::size_t>{1}, rooms));
  EXPECT_EQ(arena_rooms(arena, std::vector<std::size_t>{SIZE_MAX - 20, 100}, rooms).error().kind,
            ErrorKind::Overflow);
  std::vector<PayloadBytes> pieces;
  offsets = {0, 200};
  sizes = {10, 101};
  EXPECT_EQ(arena_payloads(arena, pieces).error().place, 1u);
  offsets = {301, 0};
  sizes = {0, 0};
  EXPECT_EQ(arena_payloads(arena, pieces).error().place, 0u);
}

}  // namespace
}  // namespace cinch::rt
