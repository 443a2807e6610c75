// Relaxed loads may return overwritten values. Code that lacks a needed order computes something
// wrong under some schedule; code that has it, or needs none, never does.
#include <algorithm>
#include <functional>

#include "tests/unit/codegen/emulator/emulated.h"

namespace cinch::emulator {
namespace {

constexpr std::uint64_t kStaleSeeds = 20;

using Words = std::vector<unsigned long long>;

// The number of schedules under which a kernel `k(unsigned long long*)` leaves a wrong result;
// `words` are zeros before.
std::uint64_t num_wrong(const std::string& text, std::uint32_t blocks, std::uint32_t block,
                        const std::function<bool(const Words&)>& is_right) {
  const Module* module = compile("using u64 = unsigned long long;\n" + text, {"k"});
  if (module == nullptr) return kStaleSeeds + 1;
  std::uint64_t wrong = 0;
  for (std::uint64_t seed = 0; seed < kStaleSeeds; ++seed) {
    Gpu gpu({.schedule_seed = seed});
    Array<unsigned long long> words(gpu, 256);
    words.zero();
    Params params(words.get());
    const auto status = gpu.launch(*module, "k", params.data(), {blocks}, {block}, 0);
    EXPECT_TRUE(status) << "seed " << seed << ": " << status.error().message;
    if (!is_right(words.read())) ++wrong;
  }
  return wrong;
}

// A chain of 60 blocks: each adds its ticket's number to the sum up to the one before.
// The text gives publish(word, sum) and wait_for(word), of a pair of words.
std::uint64_t num_wrong_look_backs(const std::string& state) {
  return num_wrong(R"(
#define DEVICE __NV_THREAD_SCOPE_DEVICE
)" + state + R"(
extern "C" __global__ void k(u64* words) {
  const u64 ticket = atomicAdd(words, 1ull);
  u64 sum = ticket + 1;
  if (ticket > 0) sum += wait_for(words + 2 * ticket);
  publish(words + 2 * ticket + 2, sum);
  words[130 + ticket] = sum;
})",
                   60, 1, [](const Words& words) {
                     for (unsigned long long ticket = 0; ticket < 60; ++ticket) {
                       if (words[130 + ticket] != (ticket + 1) * (ticket + 2) / 2) return false;
                     }
                     return true;
                   });
}

TEST(EmulatorStaleValues, LookBackOfStatusAndSumInTwoRelaxedWords) {
  EXPECT_GE(num_wrong_look_backs(R"(
__device__ void publish(u64* word, u64 sum) {
  __nv_atomic_store_n(word, sum, __NV_ATOMIC_RELAXED, DEVICE);
  __nv_atomic_store_n(word + 1, 1ull, __NV_ATOMIC_RELAXED, DEVICE);
}
__device__ u64 wait_for(u64* word) {
  while (__nv_atomic_load_n(word + 1, __NV_ATOMIC_RELAXED, DEVICE) == 0) {
  }
  return __nv_atomic_load_n(word, __NV_ATOMIC_RELAXED, DEVICE);
})"),
            kStaleSeeds / 2);
}

// One side alone orders nothing.
TEST(EmulatorStaleValues, LookBackOfWhichOneSideLacksItsOrder) {
  const auto with_orders = [](const std::string& release, const std::string& acquire) {
    return num_wrong_look_backs(R"(
__device__ void publish(u64* word, u64 sum) {
  __nv_atomic_store_n(word, sum, __NV_ATOMIC_RELAXED, DEVICE);
  __nv_atomic_store_n(word + 1, 1ull, )" +
                                release + R"(, DEVICE);
}
__device__ u64 wait_for(u64* word) {
  while (__nv_atomic_load_n(word + 1, )" +
                                acquire + R"(, DEVICE) == 0) {
  }
  return __nv_atomic_load_n(word, __NV_ATOMIC_RELAXED, DEVICE);
})");
  };
  EXPECT_GE(with_orders("__NV_ATOMIC_RELAXED", "__NV_ATOMIC_ACQUIRE"), 1u);
  EXPECT_GE(with_orders("__NV_ATOMIC_RELEASE", "__NV_ATOMIC_RELAXED"), 1u);
  EXPECT_EQ(with_orders("__NV_ATOMIC_RELEASE", "__NV_ATOMIC_ACQUIRE"), 0u);
}

TEST(EmulatorStaleValues, LookBackOfStatusAndSumInOneRelaxedWord) {
  EXPECT_EQ(num_wrong_look_backs(R"(
__device__ void publish(u64* word, u64 sum) {
  __nv_atomic_store_n(word, 1ull << 32 | sum, __NV_ATOMIC_RELAXED, DEVICE);
}
__device__ u64 wait_for(u64* word) {
  u64 seen = 0;
  do {
    seen = __nv_atomic_load_n(word, __NV_ATOMIC_RELAXED, DEVICE);
  } while (seen == 0);
  return seen & 0xffffffffull;
})"),
            0u);
}

// A thread never goes back behind what it, or another thread of the block before a barrier, has
// seen; and it sees the last value eventually.
TEST(EmulatorStaleValues, LoadsOfOneWordAreCoherent) {
  EXPECT_EQ(num_wrong(R"(
extern "C" __global__ void k(u64* words) {
  __shared__ u64 seen;
  if (blockIdx.x == 0) {
    for (u64 i = 1; i <= 20 && threadIdx.x == 0; ++i) {
      __nv_atomic_store_n(words, i, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    }
    return;
  }
  u64 last = 0;
  for (u64 turn = 0; last < 20; ++turn) {
    const u64 now = __nv_atomic_load_n(words, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    if (now < last) words[1] = 1;
    if (threadIdx.x == turn % 2) seen = now;
    __syncthreads();
    last = seen;
    const u64 then = __nv_atomic_load_n(words, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    if (then < last) words[2] = 1;
    __syncthreads();
  }
})",
                      4, 2, [](const Words& words) { return words[1] + words[2] == 0; }),
            0u);
}

// An update finds the newest value, also one that was written without an atomic since.
TEST(EmulatorStaleValues, UpdatesFindWhatIsNewest) {
  EXPECT_EQ(num_wrong(R"(
extern "C" __global__ void k(u64* words) {
  __nv_atomic_load_n(words, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  words[1 + atomicAdd(words, 1ull)] = 1;
})",
                      40, 1,
                      [](const Words& words) {
                        return std::all_of(words.begin() + 1, words.begin() + 41,
                                           [](unsigned long long word) { return word == 1; });
                      }),
            0u);
}

// Two blocks write a word each and read the other's: with fences one of them sees the other's
// write.
TEST(EmulatorStaleValues, FencesHaveAnOrder) {
  const auto both_see_nothing = [](const std::string& between) {
    return num_wrong(R"(
extern "C" __global__ void k(u64* words) {
  for (u64 round = 0; round < 20; ++round) {
    u64* at = words + 4 * round;
    __nv_atomic_store_n(at + blockIdx.x, 1ull, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
    )" + between + R"(;
    at[2 + blockIdx.x] =
        __nv_atomic_load_n(at + 1 - blockIdx.x, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  }
})",
                     2, 1, [](const Words& words) {
                       for (std::size_t at = 0; at < 80; at += 4) {
                         if (words[at + 2] + words[at + 3] == 0) return false;
                       }
                       return true;
                     });
  };
  EXPECT_GE(both_see_nothing(""), 1u);
  EXPECT_EQ(both_see_nothing("__threadfence()"), 0u);
}

}  // namespace
}  // namespace cinch::emulator
