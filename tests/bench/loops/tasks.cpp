// Threads that live as long as the library, shared by all loops.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "draws.h"

namespace loops {
namespace {

// Workers look this often for new work before they sleep: some 50 microseconds.
constexpr int kSpins = 2000;

class Pool {
 public:
  explicit Pool(unsigned threads) {
    for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this] { serve(); });
  }
  ~Pool() {
    ends_ = true;
    wake();
    for (std::thread& worker : workers_) worker.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(std::size_t number, void (*work)(void*, std::size_t), void* context) {
    if (number <= 1 || workers_.empty()) {
      for (std::size_t t = 0; t < number; ++t) work(context, t);
      return;
    }
    number_ = number;
    work_ = work;
    context_ = context;
    ticket_ = 0;
    is_open_ = true;
    wake();
    take_tasks();
    // A worker that arrives now is too late, and nobody waits for it.
    is_open_ = false;
    while (at_work_ != 0) __builtin_ia32_pause();
  }

 private:
  void wake() {
    round_.fetch_add(1);
    round_.notify_all();
  }
  void take_tasks() {
    for (std::size_t t = ticket_.fetch_add(1); t < number_; t = ticket_.fetch_add(1)) {
      work_(context_, t);
    }
  }
  void serve() {
    for (unsigned seen = 0;;) {
      for (int i = 0; i < kSpins && round_.load() == seen; ++i) __builtin_ia32_pause();
      round_.wait(seen);
      seen = round_.load();
      if (ends_) return;
      at_work_.fetch_add(1);
      if (is_open_) take_tasks();
      at_work_.fetch_sub(1);
    }
  }

  std::vector<std::thread> workers_;
  std::atomic<unsigned> round_{0};
  std::atomic<bool> ends_{false}, is_open_{false};
  std::atomic<int> at_work_{0};
  std::atomic<std::size_t> ticket_{0};
  std::size_t number_ = 0;
  void (*work_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
};

std::unique_ptr<Pool> pool;

}  // namespace

void run_tasks(std::size_t number, void (*work)(void*, std::size_t), void* context) {
  pool->run(number, work, context);
}

bool mark_non_finite(const Job& job, std::uint32_t largest) {
  header_of(job).non_finite = largest >= kInfinity ? 1 : 0;
  return largest >= kInfinity;
}

bool decode_marked(const Job& job) {
  if (header_of(job).non_finite == 0) return false;
  std::fill(job.out, job.out + job.n, std::numeric_limits<float>::quiet_NaN());
  return true;
}

Draws::Draws(std::uint64_t step) {
  std::uint64_t words[4] = {0, 0, 0, 0x636e6368};  // tensor, piece, worker
  philox(words, 0, 0);                             // the seed
  key[0] = static_cast<std::uint32_t>(words[0]);
  key[1] = static_cast<std::uint32_t>(words[1]);
  step_words[0] = static_cast<std::uint32_t>(step);
  step_words[1] = static_cast<std::uint32_t>(step >> 32);
}

void swap_states(Job& job) {
  for (int i = 0; i < 2; ++i) std::swap(job.state[i], job.next_state[i]);
}

/// Call this first; one thread makes all calls.
extern "C" void use_threads(unsigned threads) {
  pool = std::make_unique<Pool>(threads);
}

}  // namespace loops
