// Ranks over UCX that are threads of the test, each with its own connections; they meet over a
// store in memory.
#pragma once
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/transports/ucx/ucx_transport.h"

namespace cinch::rt {

class StoreInMemory : public KeyValueStore {
 public:
  Status put(const std::string& key, std::span<const std::uint8_t> value) override {
    const std::lock_guard lock(mutex_);
    values_[key].assign(value.begin(), value.end());
    changed_.notify_all();
    return Ok{};
  }
  Result<std::optional<std::vector<std::uint8_t>>> get(const std::string& key,
                                                       std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); })) {
      return std::nullopt;
    }
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::uint8_t>> values_;
};

/// Options by rank; `change` may make some differ.
inline std::vector<UcxOptions> ucx_options(std::uint32_t world, const std::string& transports,
                                           const std::function<void(UcxOptions&)>& change = {}) {
  const auto store = std::make_shared<StoreInMemory>();
  std::vector<UcxOptions> all(world);
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    UcxOptions& options = all[rank];
    options.rank = rank;
    options.world = world;
    options.store = store;
    options.secret = "open sesame";
    options.transports = transports;
    if (transports.find("tcp") != std::string::npos) options.interface = "lo";
    if (change) change(options);
  }
  return all;
}

/// Runs the body on a thread for each rank.
inline void run_ucx_threads(const std::vector<UcxOptions>& all,
                            const std::function<void(std::unique_ptr<Transport>&)>& body) {
  std::vector<std::thread> threads;
  for (const UcxOptions& options : all) {
    threads.emplace_back([&] {
      auto transport = open_ucx_transport(options);
      ASSERT_TRUE(transport) << transport.error().message;
      body(*transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// The errors of opening, by rank; "" for none.
inline std::vector<std::string> errors_of_opening(const std::vector<UcxOptions>& all) {
  std::vector<std::string> errors(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto transport = open_ucx_transport(all[i]);
      if (!transport) errors[i] = transport.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace cinch::rt
