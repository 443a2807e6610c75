// Two threads that make the same call at once, which users should not do.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace cinch::testing {

/// Calls call(thread, turn), which returns whether it was done and not rejected, from two threads
/// until each has succeeded `turns` times and one call was rejected.
template <typename Call>
void call_from_two_threads(int turns, const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(60);
  std::atomic<int> num_refused{0};
  const auto work = [&](int thread) {
    int num_done = 0;
    for (int turn = 0; num_done < turns || num_refused == 0; ++turn) {
      if (Clock::now() > end) break;
      if (call(thread, turn)) {
        ++num_done;
      } else {
        ++num_refused;
      }
    }
    EXPECT_GE(num_done, turns);
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  EXPECT_GT(num_refused, 0) << "the threads never met";
}

}  // namespace cinch::testing
