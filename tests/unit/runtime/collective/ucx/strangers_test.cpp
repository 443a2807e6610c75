// Strangers at the ports where UCX listens while ranks exchange messages over TCP.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "runtime/transports/ucx/sockets.h"
#include "runtime/transports/ucx/ucx_links.h"
#include "tests/unit/runtime/collective/transport_checks.h"
#include "tests/unit/runtime/collective/ucx/ucx_threads.h"

namespace cinch::rt {
namespace {

std::set<std::string> own_sockets() {
  std::set<std::string> inodes;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string link = std::filesystem::read_symlink(file.path(), error).string();
    if (link.starts_with("socket:[")) inodes.insert(link.substr(8, link.size() - 9));
  }
  return inodes;
}

// Of this process, on any address of IPv4: those that listen.
std::vector<std::uint16_t> listening_ports() {
  const std::set<std::string> inodes = own_sockets();
  std::vector<std::uint16_t> ports;
  std::ifstream file("/proc/net/tcp");
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::vector<std::string> all;
    for (std::string word; words >> word;) all.push_back(word);
    if (all.size() < 10 || all[3] != "0A" || !inodes.contains(all[9])) continue;
    ports.push_back(
        static_cast<std::uint16_t>(std::stoul(all[1].substr(all[1].find(':') + 1), nullptr, 16)));
  }
  return ports;
}

// Every address of this machine with every port.
std::vector<NetAddress> own_addresses(const std::vector<std::uint16_t>& ports) {
  std::vector<NetAddress> found;
  ifaddrs* all = nullptr;
  EXPECT_EQ(::getifaddrs(&all), 0);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr,
                text.data(), text.size());
    for (const std::uint16_t port : ports) found.push_back({text.data(), port});
  }
  ::freeifaddrs(all);
  return found;
}

void act(OwnedFile& file, std::mt19937& random) {
  std::vector<std::uint8_t> bytes(random() % 3000);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  switch (random() % 3) {
    case 0:
      return;  // half open
    case 1: {
      const linger none{1, 0};
      ::setsockopt(file.number(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
      return file.close();
    }
    default:
      (void)send_some(file, bytes);
  }
}

// Lets something be done when the first two of three ranks listen.
class SlowStore : public StoreInMemory {
 public:
  explicit SlowStore(std::function<void()> act) : act_(std::move(act)) {}
  Status put(const std::string& key, std::span<const std::uint8_t> value) override {
    if (key == "cinch/1/2") act_();
    return StoreInMemory::put(key, value);
  }

 private:
  std::function<void()> act_;
};

// UCX ends the process of a rank to whom a stranger sends UCX's own first bytes and then nonsense
// (see docs/sync_reference.md); all others it sends away.
TEST(UcxStrangers, AreSentAwayWhileRanksConnect) {
  constexpr int kStrangers = 200;
  std::vector<OwnedFile> kept;
  const auto store = std::make_shared<SlowStore>([&] {
    // Those of the other two may not be there yet.
    const SocketClock::time_point end = SocketClock::now() + std::chrono::seconds(10);
    std::vector<std::uint16_t> ports;
    while (ports.size() < 3 && SocketClock::now() < end) ports = listening_ports();
    ASSERT_EQ(ports.size(), 3U);
    std::mt19937 random(3);
    for (int i = 0; i < kStrangers; ++i) {
      auto file = connect_to({"127.0.0.1", ports[random() % ports.size()]}, "", end);
      ASSERT_TRUE(file) << file.error().message;
      act(*file, random);
      kept.push_back(std::move(*file));
    }
  });
  run_ucx_threads(ucx_options(3, "tcp", [&](UcxOptions& options) { options.store = store; }),
                  [](auto& transport) { check_everything(*transport); });
  EXPECT_EQ(kept.size(), static_cast<std::size_t>(kStrangers));
}

TEST(UcxStrangers, ReachNobodyWhenRanksAreConnected) {
  run_ucx_threads(ucx_options(3, "tcp"), [](auto& transport) {
    check_all_gather(*transport, 10);  // all have opened theirs
    const auto ports = listening_ports();
    EXPECT_EQ(ports.size(), 3U);
    for (const std::uint16_t port : ports) {
      const auto file =
          connect_to({"127.0.0.1", port}, "", SocketClock::now() + std::chrono::milliseconds(50));
      EXPECT_FALSE(file) << port;
    }
    check_everything(*transport);
  });
}

// UCX then listens at each, and a rank may be reached at any.
TEST(UcxStrangers, ReachNobodyAtAnyInterface) {
  const auto all = ucx_options(2, "tcp", [](UcxOptions& options) { options.interface.clear(); });
  run_ucx_threads(all, [](auto& transport) {
    check_all_gather(*transport, 10);  // all have opened theirs
    const auto ports = listening_ports();
    EXPECT_GE(ports.size(), 2U);
    for (const NetAddress& address : own_addresses(ports)) {
      const auto file = connect_to(address, "", SocketClock::now() + std::chrono::milliseconds(50));
      EXPECT_FALSE(file) << address.text();
    }
    check_everything(*transport);
  });
}

// Ends that are connected over TCP, of this process.
std::vector<int> connected_files() {
  std::vector<int> found;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int number = std::stoi(file.path().filename().string());
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const bool is_connected =
        ::getpeername(number, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.sin_family == AF_INET;
    if (is_connected) found.push_back(number);
  }
  return found;
}

// Somebody, or a broken network, ends the connections in the middle of exchanges, small and large.
TEST(UcxStrangers, ConnectionsThatAreCutAreNamed) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{5000000}}) {
    std::atomic<int> num_exchanges{0};
    run_ucx_threads(ucx_options(2, "tcp"), [&](auto& transport) {
      const std::uint32_t rank = transport->rank();
      std::vector<std::uint8_t> out(size, 1), in(size);
      Status status = Ok{};
      for (int i = 0; i < 1000 && status; ++i) {
        if (i == 20 && rank == 0) {
          const auto files = connected_files();
          EXPECT_FALSE(files.empty());
          for (const int file : files) ::shutdown(file, SHUT_RDWR);
        }
        Exchange exchange{ExchangeKind::AllToAll};
        const std::vector<ByteRange> parts{{0, rank == 0 ? 0 : size}, {0, rank == 0 ? size : 0}};
        exchange.input = out;
        exchange.output = in;
        exchange.sent = exchange.received = parts;
        status = exchange_now(*transport, exchange, std::chrono::seconds(10), "cut");
        ++num_exchanges;
      }
      ASSERT_FALSE(status);
      EXPECT_NE(status.error().message.find(rank == 0 ? "rank 1" : "rank 0"), std::string::npos)
          << status.error().message;
      transport.reset();
    });
    EXPECT_GE(num_exchanges, 2 * 20);
    // New ones in the same process are sound.
    run_ucx_threads(ucx_options(2, "tcp"), [](auto& transport) { check_messages(*transport, 10); });
  }
}

// Somebody on the network who alters a byte of what passes; UCX is as it is otherwise.
class Altering {
 public:
  Altering() : real_(**ucx_library()), calls_(real_) {
    the_one = this;
    calls_.send = [](cinch_ucx_worker* worker, std::uint32_t peer, const void* header,
                     std::size_t header_bytes, const void* body, std::uint64_t bytes,
                     std::uint64_t token) {
      const auto* const sent = static_cast<const std::uint8_t*>(body);
      auto& copy = the_one->copies_.emplace_back(sent, sent + bytes);
      if (the_one->alters && bytes > 1000) copy[bytes / 2] ^= 4;
      the_one->real_.send(worker, peer, header, header_bytes, copy.data(), bytes, token);
    };
  }
  const cinch_ucx_calls& calls() const { return calls_; }

  bool alters = false;

 private:
  static inline Altering* the_one = nullptr;
  const cinch_ucx_calls& real_;
  cinch_ucx_calls calls_;
  std::deque<std::vector<std::uint8_t>> copies_;  // UCX reads them until they are sent
};

// The received part may come before or after its receive was begun.
TEST(UcxStrangers, WhoAltersABodyIsFoundAndTheSenderNamed) {
  ASSERT_TRUE(ucx_library());
  for (const bool is_early : {false, true}) {
    Altering network;
    std::vector<std::unique_ptr<UcxLinks>> links;
    std::vector<std::vector<std::uint8_t>> addresses;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      auto opened = UcxLinks::open(network.calls(), {rank, 2, "tcp", "lo"});
      ASSERT_TRUE(opened) << opened.error().message;
      addresses.push_back(*(*opened)->address());
      links.push_back(std::move(*opened));
    }
    for (const auto& each : links) ASSERT_TRUE(each->connect(addresses, sha256({})));
    const auto move_until = [&](const auto& is_over) {
      const SocketClock::time_point end = SocketClock::now() + std::chrono::seconds(20);
      while (!is_over()) {
        ASSERT_LT(SocketClock::now(), end);
        for (const auto& each : links) each->progress();
      }
    };
    move_until(
        [&] { return links[0]->silent_ranks().empty() && links[1]->silent_ranks().empty(); });
    const std::vector<std::uint8_t> sent(200000, 7);
    std::vector<std::uint8_t> received(sent.size());
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
      network.alters = tag == 2;
      const std::uint64_t sending = links[0]->send(1, tag, sent);
      if (is_early) {
        move_until([&] { return *links[0]->is_over(sending); });
      }
      const std::uint64_t receiving = links[1]->receive(0, tag, received);
      Result<bool> is_over = false;
      move_until([&] { return !(is_over = links[1]->is_over(receiving)) || *is_over; });
      EXPECT_EQ(is_over.has_value(), !network.alters) << tag;
      if (!network.alters) EXPECT_EQ(received, sent);
      if (is_over) continue;
      EXPECT_EQ(is_over.error().kind, ErrorKind::CorruptPayload);
      EXPECT_EQ(is_over.error().message, "what rank 0 sends was altered on its way");
    }
    for (const auto& each : links) each->disconnect();
  }
}

// Over shared memory nobody listens on a network.
TEST(UcxStrangers, FindNothingWhereRanksShareAMachine) {
  run_ucx_threads(ucx_options(3, ""), [](auto& transport) {
    check_messages(*transport, 10);
    EXPECT_EQ(listening_ports(), std::vector<std::uint16_t>());
    check_messages(*transport, 10);
  });
}

}  // namespace
}  // namespace cinch::rt
