// Frames of ranks that meet, and bytes of strangers in their place.
#include "runtime/transports/ucx/sockets.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/transports/ucx/rendezvous.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kMost = 200;

Hello some_hello() {
  Hello hello{3, 7, {}, {}};
  hello.nonce = sha256({});
  hello.proof[5] = 9;
  return hello;
}

TEST(Frames, ArriveInAnyPieces) {
  auto bytes = frame_bytes(FrameKind::Hello, body_of(some_hello()));
  const auto more = frame_bytes(FrameKind::RankPart, {});
  bytes.insert(bytes.end(), more.begin(), more.end());
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
      const std::size_t size = std::min(piece, bytes.size() - begin);
      reader.add(std::span<const std::uint8_t>(bytes).subspan(begin, size));
      for (auto frame = reader.next(kMost); frame && *frame; frame = reader.next(kMost)) {
        frames.push_back(**frame);
      }
    }
    ASSERT_EQ(frames.size(), 2U) << piece;
    const auto hello = read_hello(frames[0]);
    ASSERT_TRUE(hello);
    EXPECT_EQ(hello->rank, 3U);
    EXPECT_EQ(hello->world, 7U);
    EXPECT_EQ(hello->nonce, some_hello().nonce);
    EXPECT_EQ(hello->proof, some_hello().proof);
    EXPECT_EQ(frames[1].kind, FrameKind::RankPart);
  }
}

TEST(Frames, OfStrangersAreFoundAtOnce) {
  const auto refuses = [](std::vector<std::uint8_t> bytes) {
    FrameReader reader;
    reader.add(bytes);
    return !reader.next(kMost);
  };
  EXPECT_TRUE(refuses({'G', 'E', 'T'}));
  const auto right = frame_bytes(FrameKind::Verdict, body_of(Verdict{}));
  EXPECT_FALSE(refuses(right));
  for (const std::size_t place : {0, 1, 2, 3, 4, 5, 6, 7, 10, 11}) {
    auto wrong = right;
    wrong[place] = 0xee;
    EXPECT_TRUE(refuses(wrong)) << place;
  }
  auto without_kind = right;
  without_kind[4] = 0;
  EXPECT_TRUE(refuses(without_kind));
}

// Bytes of one kind are not taken for another, nor is what is cut or longer.
TEST(Frames, BodiesAreWhole) {
  const std::vector<std::pair<FrameKind, std::vector<std::uint8_t>>> bodies = {
      {FrameKind::Hello, body_of(some_hello())},
      {FrameKind::Challenge, body_of(Challenge{})},
      {FrameKind::Answer, body_of(Answer{})},
      {FrameKind::Verdict, body_of(Verdict{VerdictCode::RankTaken, 4, {}})}};
  const auto readers = [](const Frame& frame) {
    return std::vector<bool>{read_hello(frame).has_value(), read_challenge(frame).has_value(),
                             read_answer(frame).has_value(), read_verdict(frame).has_value()};
  };
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    std::vector<bool> wanted(4);
    wanted[i] = true;
    Frame frame{bodies[i].first, bodies[i].second};
    EXPECT_EQ(readers(frame), wanted);
    frame.body.push_back(0);
    EXPECT_EQ(readers(frame), std::vector<bool>(4));
    frame.body.resize(bodies[i].second.size() - 1);
    EXPECT_EQ(readers(frame), std::vector<bool>(4));
  }
  Frame verdict{FrameKind::Verdict, bodies[3].second};
  verdict.body[0] = 77;
  EXPECT_FALSE(read_verdict(verdict));
}

TEST(Frames, RoundsAreReadAsTheyWereWritten) {
  const std::vector<Part> parts{{1, 2, 3}, {}, {9}};
  const auto read = read_round(body_of(parts), 3);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, parts);
  const auto failed = read_round(
      body_of(tl::unexpected<Error>(Error{ErrorKind::TimedOut, "rank 2 has not come"})), 3);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::TimedOut);
  EXPECT_EQ(failed.error().message, "rank 2 has not come");
  for (const std::uint32_t other : {0, 2, 4}) EXPECT_FALSE(read_round(body_of(parts), other));
  EXPECT_FALSE(read_round({}, 0));
}

TEST(Frames, SealsAreOfOneKeyAndRound) {
  const Digest key = sha256({}), other{};
  const std::vector<std::uint8_t> body{5, 6, 7};
  auto bytes = sealed(key, "there", 1, body);
  const auto opened = unsealed(key, "there", 1, bytes);
  ASSERT_TRUE(opened);
  EXPECT_EQ(std::vector<std::uint8_t>(opened->begin(), opened->end()), body);
  EXPECT_FALSE(unsealed(other, "there", 1, bytes));
  EXPECT_FALSE(unsealed(key, "back", 1, bytes));
  EXPECT_FALSE(unsealed(key, "there", 2, bytes));
  bytes[1] ^= 1;
  EXPECT_FALSE(unsealed(key, "there", 1, bytes));
  EXPECT_FALSE(unsealed(key, "there", 1, std::span(bytes).first(31)));
}

// Whatever the bytes are, readers end and read no more than there is.
TEST(Frames, RandomBytesAreSurvived) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<std::uint8_t> bytes(random() % 150);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    if (trial % 2 == 0) {
      auto framed = frame_bytes(static_cast<FrameKind>(1 + random() % 6), bytes);
      framed[random() % framed.size()] ^= static_cast<std::uint8_t>(1 << random() % 8);
      bytes = framed;
    }
    FrameReader reader;
    reader.add(bytes);
    if (const auto frame = reader.next(kMost); frame && *frame) {
      (void)read_hello(**frame);
      (void)read_challenge(**frame);
      (void)read_answer(**frame);
      (void)read_verdict(**frame);
    }
    if (const auto round = read_round(bytes, 3)) EXPECT_EQ(round->size(), 3U);
    (void)read_part(bytes);
    (void)read_card(bytes);
  }
}

TEST(Frames, CardsSayWhoSharesAMachine) {
  const RankCard own = own_card();
  RankCard elsewhere = own_card();
  elsewhere.machine += "x";
  elsewhere.shared_bytes = 5;
  const auto one = job_of({bytes_of(own), bytes_of(own_card())}, "secret");
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->is_one_machine);
  EXPECT_GT(one->shared_bytes, 5U);
  const auto two = job_of({bytes_of(own), bytes_of(elsewhere)}, "secret");
  ASSERT_TRUE(two);
  EXPECT_FALSE(two->is_one_machine);
  EXPECT_EQ(two->shared_bytes, 5U);
  EXPECT_NE(one->key, two->key);
  EXPECT_NE(job_of({bytes_of(own), bytes_of(elsewhere)}, "other")->key, two->key);
  elsewhere.version = 7;
  const auto newer = job_of({bytes_of(own), bytes_of(elsewhere)}, "secret");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().kind, ErrorKind::VersionMismatch);
  EXPECT_EQ(newer.error().message, "rank 1 sends messages of version 7, not 2");
}

TEST(Frames, AddressesAreHostAndPort) {
  EXPECT_EQ(parse_net_address("127.0.0.1:29400")->port, 29400);
  EXPECT_EQ(parse_net_address("[::1]:80")->host, "::1");
  EXPECT_EQ(parse_net_address("[::1]:80")->text(), "[::1]:80");
  for (const char* wrong : {"", "host", ":80", "host:", "host:0", "host:65536", "host:-1",
                            "host:80x", "::1:80", "[]:80"}) {
    EXPECT_FALSE(parse_net_address(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace cinch::rt
