// Ranks that find each other over a socket and over a store; strangers, other secrets, ranks that
// do not come.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "runtime/transports/ucx/sockets.h"
#include "tests/unit/runtime/collective/transport_checks.h"
#include "tests/unit/runtime/collective/ucx/ucx_threads.h"

namespace cinch::rt {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
constexpr std::chrono::milliseconds kShort{700};

// One that nobody listens on.
std::uint16_t free_port() {
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(file, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(file, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ::close(file);
  return ::ntohs(address.sin_port);
}

std::vector<UcxOptions> options_over_socket(std::uint32_t world, std::uint16_t port,
                                            const std::function<void(UcxOptions&)>& change = {}) {
  return ucx_options(world, "posix,self", [&](UcxOptions& options) {
    options.store = nullptr;
    options.rendezvous = fmt::format("127.0.0.1:{}", port);
    if (change) change(options);
  });
}

// Keeps opening connections while others meet, and does something with each.
class Strangers {
 public:
  Strangers(std::uint16_t port, std::function<void(OwnedFile&)> act)
      : thread_([this, port, act = std::move(act)] {
          while (!is_over_) {
            auto file = connect_to({"127.0.0.1", port}, "",
                                   SocketClock::now() + std::chrono::milliseconds(20));
            if (!file) continue;
            act(*file);
            ++num_;
            kept_.push_back(std::move(*file));
          }
        }) {}
  ~Strangers() {
    is_over_ = true;
    thread_.join();
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;
  int num() const { return num_; }

 private:
  std::atomic<bool> is_over_{false};
  std::atomic<int> num_{0};
  std::vector<OwnedFile> kept_;
  std::thread thread_;
};

void send_text(OwnedFile& file, std::string_view text) {
  (void)send_some(file, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

TEST(Rendezvous, RanksMeetOverASocket) {
  run_ucx_threads(options_over_socket(4, free_port()), [](auto& transport) {
    EXPECT_EQ(transport->world(), 4U);
    check_all_gather(*transport, 100);
  });
}

// Rank 0 comes last: the others wait for it.
TEST(Rendezvous, RanksWaitForRankZero) {
  const auto all = options_over_socket(3, free_port());
  std::vector<std::thread> threads;
  for (const UcxOptions& options : all) {
    threads.emplace_back([&] {
      if (options.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const auto transport = open_ucx_transport(options);
      ASSERT_TRUE(transport) << transport.error().message;
      check_messages(**transport, 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, NothingListensAfterwards) {
  const std::uint16_t port = free_port();
  run_ucx_threads(options_over_socket(2, port), [&](auto& transport) {
    check_messages(*transport, 10);
    const auto file = connect_to({"127.0.0.1", port}, "", SocketClock::now());
    EXPECT_FALSE(file);
    check_messages(*transport, 10);
  });
}

struct Stranger {
  const char* name;
  void (*act)(OwnedFile&);
  const char* reason;  // why the stranger is disconnected
};

class StrangersAt : public ::testing::TestWithParam<Stranger> {};

constexpr Stranger kStrangers[] = {
    {"garbage", [](OwnedFile& file) { send_text(file, "GET / HTTP/1.1\r\n\r\n"); },
     "bytes that do not begin as messages of ranks do"},
    {"too_long",
     [](OwnedFile& file) { send_text(file, std::string_view("CnRv\2\0\0\0\xff\xff\xff\xff", 12)); },
     "a message that no rank sends"},
    {"another_kind",
     [](OwnedFile& file) { (void)send_some(file, frame_bytes(FrameKind::RankPart, {})); },
     "a message that no rank sends"},
    {"silence", [](OwnedFile&) {}, nullptr},
    {"half_a_frame", [](OwnedFile& file) { send_text(file, "CnR"); }, nullptr},
    {"gone", [](OwnedFile& file) { file.close(); }, "it said nothing"},
    {"reset",
     [](OwnedFile& file) {
       const linger none{1, 0};
       ::setsockopt(file.number(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
       file.close();
     },
     nullptr},
    {"another_secret",
     [](OwnedFile& file) {
       const Hello hello{1, 3, random_digest(), random_digest()};
       (void)send_some(file, frame_bytes(FrameKind::Hello, body_of(hello)));
     },
     "rank 1 of 3 has another secret"},
    {"answer_without_hello",
     [](OwnedFile& file) {
       (void)send_some(file, frame_bytes(FrameKind::Answer, body_of(Answer{random_digest()})));
     },
     nullptr}};

// They are disconnected, and ranks notice nothing.
TEST_P(StrangersAt, AreSentAway) {
  const std::uint16_t port = free_port();
  const auto all = options_over_socket(3, port);
  std::vector<std::thread> threads;
  std::atomic<int> num_seen{0};
  for (const UcxOptions& options : all) {
    threads.emplace_back([&] {
      while (options.rank == 2 && num_seen < 20) std::this_thread::yield();
      const auto transport = open_ucx_transport(options);
      ASSERT_TRUE(transport) << transport.error().message;
      check_messages(**transport, 10);
    });
  }
  {
    const Strangers strangers(port, GetParam().act);
    while (strangers.num() < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    num_seen = 20;
  }
  for (std::thread& thread : threads) thread.join();
}

// A flood of them, who say nothing and stay, before the ranks come.
TEST(Rendezvous, SilentConnectionsKeepNobodyOut) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  constexpr rlim_t kFiles = 2500;
  if (files.rlim_max < kFiles) GTEST_SKIP() << "too few files";
  const rlimit more{std::max(files.rlim_cur, kFiles), files.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &more), 0);
  const std::uint16_t port = free_port();
  const auto all = options_over_socket(
      4, port, [](UcxOptions& options) { options.timeout = std::chrono::milliseconds(4000); });
  std::vector<std::thread> threads;
  std::atomic<bool> is_flooded{false};
  for (const UcxOptions& options : all) {
    threads.emplace_back([&] {
      while (options.rank != 0 && !is_flooded) std::this_thread::yield();
      const auto transport = open_ucx_transport(options);
      ASSERT_TRUE(transport) << transport.error().message;
      check_messages(**transport, 10);
    });
  }
  std::vector<OwnedFile> kept;
  for (int i = 0; i < 1500; ++i) {
    auto file = connect_to({"127.0.0.1", port}, "", SocketClock::now() + std::chrono::seconds(4));
    if (file) kept.push_back(std::move(*file));
  }
  is_flooded = true;
  for (std::thread& thread : threads) thread.join();
}

// Those that are sent away within the time.
class NoticedStrangersAt : public StrangersAt {};

// If a rank is missing, its error says which strangers came.
TEST_P(NoticedStrangersAt, AreNamedWhereARankIsMissing) {
  const std::uint16_t port = free_port();
  auto all = options_over_socket(3, port, [](UcxOptions& options) { options.timeout = kShort; });
  all.pop_back();
  const Strangers strangers(port, GetParam().act);
  for (const std::string& error : errors_of_opening(all)) {
    EXPECT_THAT(error, StartsWith("rank 2 has not come within 700 ms; "));
    EXPECT_THAT(error, HasSubstr(fmt::format("127.0.0.1: {}", GetParam().reason)));
  }
}

std::vector<Stranger> noticed_strangers() {
  std::vector<Stranger> noticed;
  for (const Stranger& each : kStrangers) {
    if (each.reason != nullptr) noticed.push_back(each);
  }
  return noticed;
}

INSTANTIATE_TEST_SUITE_P(Rendezvous, StrangersAt, ::testing::ValuesIn(kStrangers),
                         [](const auto& each) { return std::string(each.param.name); });
INSTANTIATE_TEST_SUITE_P(Rendezvous, NoticedStrangersAt, ::testing::ValuesIn(noticed_strangers()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Rendezvous, SecretsThatDifferAreNamedOnEveryRank) {
  const auto errors =
      errors_of_opening(options_over_socket(3, free_port(), [](UcxOptions& options) {
        options.timeout = kShort;
        if (options.rank == 1) options.secret = "open barley";
      }));
  EXPECT_THAT(errors[1], HasSubstr("sends rank 1 away: their secrets differ"));
  for (const std::size_t rank : {0, 2}) {
    EXPECT_THAT(errors[rank], StartsWith("rank 1 has not come within 700 ms; "));
    EXPECT_THAT(errors[rank], HasSubstr("rank 1 of 3 has another secret"));
  }
}

TEST(Rendezvous, SecretsThatDifferInAStoreAreNamedOnEveryRank) {
  const auto errors = errors_of_opening(ucx_options(3, "posix,self", [](UcxOptions& options) {
    options.timeout = kShort;
    if (options.rank == 1) options.secret = "open barley";
  }));
  for (const std::string& error : errors) EXPECT_EQ(error, "the secrets of ranks 0 and 1 differ");
}

TEST(Rendezvous, WhatAnEarlierMeetingLeftInAStoreIsNotBelieved) {
  const auto all = ucx_options(2, "posix,self");
  for (const std::string& error : errors_of_opening(all)) EXPECT_EQ(error, "");
  EXPECT_THAT(errors_of_opening({all[1]})[0],
              StartsWith("the store has an earlier meeting under cinch/0/all"));
}

// It has the port, but not the secret.
TEST(Rendezvous, AFalseRankZeroIsFound) {
  const std::uint16_t port = free_port();
  std::thread impostor([&] {
    const auto listener = listen_at({"127.0.0.1", port}, "");
    ASSERT_TRUE(listener) << listener.error().message;
    std::string from;
    ASSERT_TRUE(wait_to_read(*listener, SocketClock::now() + std::chrono::seconds(10)));
    OwnedFile file = accept_one(*listener, from);
    (void)send_some(file, frame_bytes(FrameKind::Challenge, body_of(Challenge{})));
    std::array<std::uint8_t, 200> answer;
    ASSERT_TRUE(wait_to_read(file, SocketClock::now() + std::chrono::seconds(10)));
    ASSERT_TRUE(receive_some(file, answer));
    (void)send_some(file, frame_bytes(FrameKind::Verdict,
                                      body_of(Verdict{VerdictCode::Welcome, 2, random_digest()})));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  auto all = options_over_socket(2, port);
  const auto transport = open_ucx_transport(all[1]);
  impostor.join();
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(transport.error().message,
            fmt::format("who answers at 127.0.0.1:{} does not have the secret", port));
}

TEST(Rendezvous, APortInUseIsNamedOnEveryRank) {
  const std::uint16_t port = free_port();
  const auto other = listen_at({"127.0.0.1", port}, "");
  ASSERT_TRUE(other) << other.error().message;
  const auto errors = errors_of_opening(
      options_over_socket(2, port, [](UcxOptions& options) { options.timeout = kShort; }));
  EXPECT_EQ(errors[0], fmt::format("cannot listen at 127.0.0.1:{}: Address already in use", port));
  EXPECT_EQ(errors[1],
            fmt::format("who answers at 127.0.0.1:{} is not rank 0: it says nothing", port));
}

TEST(Rendezvous, RanksThatDoNotComeAreNamedOnEveryRank) {
  for (const bool over_socket : {true, false}) {
    const auto change = [](UcxOptions& options) { options.timeout = kShort; };
    auto all = over_socket ? options_over_socket(5, free_port(), change)
                           : ucx_options(5, "posix,self", change);
    all.pop_back();
    all.erase(all.begin() + 2);
    for (const std::string& error : errors_of_opening(all)) {
      EXPECT_EQ(error, "ranks 2, 4 have not come within 700 ms") << over_socket;
    }
  }
}

TEST(Rendezvous, AMissingRankZeroIsNamed) {
  const std::uint16_t port = free_port();
  auto all = options_over_socket(2, port, [](UcxOptions& options) { options.timeout = kShort; });
  const auto transport = open_ucx_transport(all[1]);
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().kind, ErrorKind::TimedOut);
  EXPECT_EQ(transport.error().message,
            fmt::format("nobody answers at 127.0.0.1:{}: Connection refused", port));
}

Hello hello_of(const Introduction& own, const std::string& secret) {
  return {own.rank, own.world, own.rank_nonce, own.proof_of_hello(secret)};
}

// What rank 0 answers to a hello; nothing if it closes the connection.
std::optional<Challenge> challenge_for(const OwnedFile& file, const Hello& hello) {
  (void)send_some(file, frame_bytes(FrameKind::Hello, body_of(hello)));
  EXPECT_TRUE(wait_to_read(file, SocketClock::now() + std::chrono::seconds(10)));
  std::array<std::uint8_t, 200> room;
  const auto received = receive_some(file, room);
  if (!received) return std::nullopt;
  FrameReader reader;
  reader.add(std::span(room).first(*received));
  return read_challenge(**reader.next(100));
}

// Nor does it let in who answers for another connection.
TEST(Rendezvous, AHelloThatWasOverheardGetsNoPlace) {
  const std::uint16_t port = free_port();
  const auto all =
      options_over_socket(2, port, [](UcxOptions& options) { options.timeout = kShort; });
  std::thread eavesdropper([&] {
    const auto connect = [&] {
      return connect_to({"127.0.0.1", port}, "", SocketClock::now() + std::chrono::seconds(10));
    };
    const auto rank = connect(), thief = connect(), other = connect();
    ASSERT_TRUE(rank && thief && other);
    Introduction own{{}, random_digest(), 1, 2};
    const auto challenge = challenge_for(*rank, hello_of(own, all[0].secret));
    ASSERT_TRUE(challenge);
    EXPECT_FALSE(challenge_for(*thief, hello_of(own, all[0].secret)));
    own.hub_nonce = challenge->nonce;
    const Introduction next{{}, random_digest(), 1, 2};
    EXPECT_TRUE(challenge_for(*other, hello_of(next, all[0].secret)));
    (void)send_some(
        *other, frame_bytes(FrameKind::Answer, body_of(Answer{own.proof_of_rank(all[0].secret)})));
    std::array<std::uint8_t, 200> room;
    EXPECT_TRUE(wait_to_read(*other, SocketClock::now() + std::chrono::seconds(10)));
    EXPECT_TRUE(receive_some(*other, room));
    EXPECT_TRUE(wait_to_read(*other, SocketClock::now() + std::chrono::seconds(10)));
    EXPECT_FALSE(receive_some(*other, room));
  });
  const std::string error = errors_of_opening({all[0]})[0];
  eavesdropper.join();
  EXPECT_THAT(error, StartsWith("rank 1 has not come within 700 ms; "));
  EXPECT_THAT(error, HasSubstr("it says what another one has said"));
  EXPECT_THAT(error, HasSubstr("rank 1 of 2 has another secret"));
}

// One that has come and goes again is named at once.
TEST(Rendezvous, ARankThatGoesWhileRanksMeetIsNamed) {
  const std::uint16_t port = free_port();
  auto all = options_over_socket(3, port);
  all.pop_back();
  std::thread goes([&] {
    auto file = connect_to({"127.0.0.1", port}, "", SocketClock::now() + std::chrono::seconds(10));
    ASSERT_TRUE(file) << file.error().message;
    Introduction own{{}, random_digest(), 2, 3};
    const auto challenge = challenge_for(*file, hello_of(own, all[0].secret));
    ASSERT_TRUE(challenge);
    own.hub_nonce = challenge->nonce;
    const Answer answer{own.proof_of_rank(all[0].secret)};
    (void)send_some(*file, frame_bytes(FrameKind::Answer, body_of(answer)));
    ASSERT_TRUE(wait_to_read(*file, SocketClock::now() + std::chrono::seconds(10)));
    // Until then rank 1 has come, too: later it would find nobody.
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
  });
  for (const std::string& error : errors_of_opening(all)) {
    EXPECT_EQ(error, "rank 2 has gone while ranks met");
  }
  goes.join();
}

TEST(Rendezvous, TwoProcessesWithOneNumberAreNamed) {
  const std::uint16_t port = free_port();
  auto all = options_over_socket(3, port, [](UcxOptions& options) { options.timeout = kShort; });
  all[2].rank = 1;
  const auto errors = errors_of_opening(all);
  const std::string& refused =
      errors[1].find("another process") != std::string::npos ? errors[1] : errors[2];
  EXPECT_THAT(refused, HasSubstr("sends rank 1 away: another process is that rank"));
  EXPECT_THAT(errors[0], StartsWith("rank 2 has not come"));
}

TEST(Rendezvous, WorldsThatDifferAreNamed) {
  auto all =
      options_over_socket(2, free_port(), [](UcxOptions& options) { options.timeout = kShort; });
  all[1].world = 4;
  const auto errors = errors_of_opening(all);
  EXPECT_THAT(errors[1], HasSubstr("it knows of 2 ranks, not 4"));
  EXPECT_THAT(errors[0], HasSubstr("rank 1 of 4"));
}

TEST(Rendezvous, AnInterfaceThatIsNotThereIsNamedOnEveryRank) {
  for (const std::uint32_t without : {0, 1, 2}) {
    const auto errors =
        errors_of_opening(options_over_socket(3, free_port(), [&](UcxOptions& options) {
          options.interface = options.rank == without ? "nowhere0" : "lo";
        }));
    for (const std::string& error : errors) {
      EXPECT_THAT(error, StartsWith(fmt::format(
                             "rank {}: there is no interface nowhere0; there are", without)));
      EXPECT_THAT(error, HasSubstr(" lo"));
    }
  }
}

TEST(Rendezvous, AnAddressOfAnotherInterfaceIsFound) {
  const auto listener = listen_at({"127.0.0.1", free_port()}, "nowhere0");
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().message, "127.0.0.1 is not an address of the interface nowhere0");
}

TEST(Rendezvous, OptionsThatAreNoneAreNamed) {
  UcxOptions options;
  options.rank = 5;
  options.world = 3;
  EXPECT_EQ(open_ucx_transport(options).error().message, "there is no rank 5 of 3");
  options.world = 10000;
  EXPECT_EQ(open_ucx_transport(options).error().message,
            "10000 ranks: the transport ucx takes at most 1024");
  options.world = 6;
  EXPECT_EQ(open_ucx_transport(options).error().message,
            "ranks have no rendezvous: neither address nor store");
  options.rendezvous = "nowhere";
  EXPECT_EQ(open_ucx_transport(options).error().message, "'nowhere' is not an address: HOST:PORT");
}

}  // namespace
}  // namespace cinch::rt
