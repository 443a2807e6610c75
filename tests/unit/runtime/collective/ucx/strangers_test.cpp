// Strangers at the ports where UCX listens while ranks exchange messages over TCP.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "runtime/transports/ucx/sockets.h"
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
