// Ranks of the C API over UCX that meet at a port, and over a store that the host provides.
#include <cinch_sync.h>
#include <gmock/gmock.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "support.h"

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;
constexpr std::uint32_t kRanks = 2;
constexpr std::size_t kElements = 1003;

// A store as frameworks have it.
class HostStore {
 public:
  static std::int32_t put(void* context, const char* key, const void* value, std::size_t size) {
    auto& store = *static_cast<HostStore*>(context);
    const std::lock_guard lock(store.mutex_);
    if (store.is_broken) return kBroken;
    store.values_[key].assign(static_cast<const char*>(value), size);
    store.changed_.notify_all();
    return 0;
  }
  static std::int32_t get(void* context, const char* key, void* value, std::size_t* size,
                          std::uint32_t timeout_ms) {
    auto& store = *static_cast<HostStore*>(context);
    std::unique_lock lock(store.mutex_);
    const bool has_come = store.changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                                  [&] { return store.values_.contains(key); });
    if (!has_come) return *size = CINCH_STORE_NOTHING, 0;
    const std::string& found = store.values_[key];
    if (found.size() <= *size) std::memcpy(value, found.data(), found.size());
    *size = found.size();
    return 0;
  }
  static void error_text(void*, std::int32_t error, char* text, std::size_t room) {
    std::snprintf(text, room, "store fault %d", error);
  }
  cinch_store_calls calls() {
    auto calls = sized<cinch_store_calls>();
    calls.context = this;
    calls.put = put;
    calls.get = get;
    calls.error_text = error_text;
    return calls;
  }
  static constexpr std::int32_t kBroken = 77;
  bool is_broken = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

cinch_ucx_options options_of(std::uint32_t rank, const cinch_store_calls* store) {
  auto options = sized<cinch_ucx_options>();
  options.rank = rank;
  options.world = kRanks;
  options.store = store;
  options.secret = "open sesame";
  options.secret_bytes = 11;
  return options;
}

void synchronise(cinch_transport* transport, float value) {
  auto error = sized<cinch_error>();
  auto described = sized<cinch_sync_tensor>();
  described.name = "large";
  described.rows = kElements;
  described.columns = 1;
  described.program = CINCH_EXACT;
  cinch_sync* sync = nullptr;
  ASSERT_EQ(CINCH_OK, cinch_sync_open(transport, nullptr, 0, &described, 1, nullptr, &sync, &error))
      << error.message;
  Tensor gradient(kElements, value), update(kElements), one(kElements);
  const cinch_tensor from = gradient.view(), to = update.view();
  EXPECT_EQ(CINCH_OK, cinch_sync_step(sync, 0, &from, &to, 1, &error)) << error.message;
  for (std::size_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(update.values()[i], 1.5F * one.values()[i]) << i;  // the mean of 1 and 2
  }
  cinch_sync_release(sync);
}

using Change = void (*)(cinch_ucx_options&);

// By rank: the error of opening.
std::array<std::string, kRanks> run(const cinch_store_calls* store, Change change) {
  std::array<std::string, kRanks> errors;
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      auto error = sized<cinch_error>();
      cinch_ucx_options options = options_of(rank, store);
      if (change != nullptr) change(options);
      cinch_transport* transport = nullptr;
      if (cinch_transport_of_ucx(&options, &transport, &error) != CINCH_OK) {
        errors[rank] = error.message;
        return;
      }
      EXPECT_EQ(cinch_transport_rank(transport), rank);
      EXPECT_EQ(cinch_transport_world(transport), kRanks);
      synchronise(transport, 1 + static_cast<float>(rank));
      EXPECT_GT(cinch_transport_sent_bytes(transport), 0U);
      cinch_transport_release(transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

TEST(CApiUcx, RanksMeetOverALentStore) {
  HostStore store;
  const auto calls = store.calls();
  for (const std::string& error : run(&calls, nullptr)) EXPECT_EQ(error, "");
}

TEST(CApiUcx, RanksMeetAtAPort) {
  const auto at_port = [](cinch_ucx_options& options) {
    options.store = nullptr;
    options.rendezvous = "127.0.0.1:29517";
    options.interface_name = "lo";
    options.transports = "tcp";
  };
  for (const std::string& error : run(nullptr, at_port)) EXPECT_EQ(error, "");
}

TEST(CApiUcx, SecretsThatDifferAreNamed) {
  HostStore store;
  const auto calls = store.calls();
  const auto errors = run(&calls, [](cinch_ucx_options& options) {
    if (options.rank == 1) options.secret_bytes = 4;
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "the secrets of ranks 0 and 1 differ");
}

TEST(CApiUcx, ErrorsOfTheStoreAreTheHosts) {
  HostStore store;
  store.is_broken = true;
  const auto calls = store.calls();
  auto error = sized<cinch_error>();
  const auto options = options_of(1, &calls);
  cinch_transport* transport = nullptr;
  EXPECT_EQ(CINCH_DEVICE, cinch_transport_of_ucx(&options, &transport, &error));
  EXPECT_STREQ(error.message, "the host's store, cinch/0/1: store fault 77");
}

TEST(CApiUcx, OptionsThatAreNoneAreNamed) {
  HostStore store;
  const auto calls = store.calls();
  auto error = sized<cinch_error>();
  cinch_transport* transport = nullptr;
  const auto refused = [&](const cinch_ucx_options* options) {
    EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_transport_of_ucx(options, &transport, &error));
    return std::string(error.message);
  };
  EXPECT_THAT(refused(nullptr), HasSubstr("options is null"));
  auto options = options_of(0, nullptr);
  EXPECT_THAT(refused(&options), HasSubstr("at a rendezvous or over a store"));
  options = options_of(0, &calls);
  options.rendezvous = "127.0.0.1:29400";
  EXPECT_THAT(refused(&options), HasSubstr("at a rendezvous or over a store"));
  options = options_of(0, &calls);
  options.struct_size = 8;
  EXPECT_THAT(refused(&options), HasSubstr("struct_size is 8"));
  options = options_of(2, &calls);
  EXPECT_EQ(refused(&options), "there is no rank 2 of 2");
  options.world = 10000;
  EXPECT_EQ(refused(&options), "10000 ranks: the transport ucx takes at most 1024");
  cinch_store_calls half = calls;
  half.put = nullptr;
  options = options_of(0, &half);
  EXPECT_THAT(refused(&options), HasSubstr("without put or get"));
  options = options_of(0, &calls);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, cinch_transport_of_ucx(&options, nullptr, &error));
}

// In a process of its own, which has not opened UCX.
TEST(CApiUcxDeathTest, AMachineWithoutUcxIsToldWhereItIs) {
  const auto open = [] {
    ::setenv("CINCH_UCX_LIBRARY", "/nowhere/libucp.so.0", 1);
    HostStore store;
    const auto calls = store.calls();
    auto options = options_of(0, &calls);
    options.timeout_ms = 100;
    auto error = sized<cinch_error>();
    cinch_transport* transport = nullptr;
    const cinch_status status = cinch_transport_of_ucx(&options, &transport, &error);
    std::fprintf(stderr, "%s\n", error.message);
    std::exit(status);
  };
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(open(), ::testing::ExitedWithCode(CINCH_UNAVAILABLE), "no UCX: .*nowhere.*libucx0");
}

}  // namespace
}  // namespace cinch::testing
