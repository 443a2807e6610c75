// Better code takes the place of quickly compiled code between two calls of a session.
#include "runtime/session/loaded_program.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "hand_program.h"
#include "runtime/core/files/file_bytes.h"
#include "runtime/session/session.h"

namespace cinch::rt {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kElems = 5;
constexpr float kAdded = 1000;  // by the other kernels' decode
constexpr milliseconds kLongWait{20000};

// The same program with code that can be told from the hand-made one.
ProgramImage other_image() {
  ProgramImage image = hand_image();
  image.binary = read_file_bytes(CINCH_OTHER_KERNELS).value();
  return image;
}

// Gives an image once it may.
struct Search {
  std::atomic<bool> may_find{false};
  std::atomic<int> num_looks{0};
  ProgramImage image = other_image();

  FindBetterCode function() {
    return [this]() -> std::optional<ProgramImage> {
      ++num_looks;
      if (!may_find) return std::nullopt;
      return image;
    };
  }
};

Session session_of(const std::shared_ptr<const LoadedProgram>& program) {
  SessionOptions options;
  options.rows = kElems;
  options.threads = 1;
  return Session::open(program, options).value();
}

std::shared_ptr<const LoadedProgram> program_with(Search& search) {
  return LoadedProgram::load(hand_image(), search.function()).value();
}

// Encodes and decodes 3 for every element.
float decoded(Session& session, std::uint64_t step) {
  std::vector<float> gradient(kElems, 3), out(kElems);
  const auto payload = session.encode({gradient.data(), kF32, kElems}, step);
  EXPECT_TRUE(payload);
  EXPECT_TRUE(session.decode(*payload, {out.data(), kF32, kElems}, step));
  return out[0];
}

// Until the condition holds; false if it does not in a long time.
template <typename Condition>
bool wait_for(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kLongWait;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

TEST(BetterCode, TakesThePlaceOfTheFirstInOpenSessions) {
  Search search;
  const auto program = program_with(search);
  Session first = session_of(program), second = session_of(program);
  std::uint64_t step = 0;
  ASSERT_TRUE(wait_for([&] {
    EXPECT_EQ(decoded(first, step++), 3.0F);
    return search.num_looks > 0;
  }));
  search.may_find = true;
  ASSERT_TRUE(wait_for([&] { return decoded(first, step++) == 3 + kAdded; }));
  EXPECT_EQ(decoded(second, 0), 3 + kAdded);
  const int num_looks = search.num_looks;
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_EQ(decoded(first, step), 3 + kAdded);
  EXPECT_EQ(search.num_looks, num_looks) << "it was found already";
}

TEST(BetterCode, IsNotLookedForAtEveryCall) {
  Search search;
  const auto program = program_with(search);
  Session session = session_of(program);
  for (std::uint64_t step = 0; step < 1000; ++step) (void)decoded(session, step);
  EXPECT_LT(search.num_looks, 100);
}

// Finds the image, but runs the code that it has.
void expect_not_used(Search& search) {
  search.may_find = true;
  const auto program = program_with(search);
  Session session = session_of(program);
  std::uint64_t step = 0;
  ASSERT_TRUE(wait_for([&] {
    EXPECT_EQ(decoded(session, step++), 3.0F);
    return search.num_looks > 0;
  }));
  EXPECT_EQ(decoded(session, step), 3.0F);
}

TEST(BetterCode, OfAnotherProgramIsNotUsed) {
  Search search;
  search.image = hand_image({.has_decode_add = true});
  search.image.binary = other_image().binary;
  expect_not_used(search);
}

TEST(BetterCode, ThatCannotBeLoadedIsNotUsed) {
  Search search;
  search.image.binary.resize(100);
  expect_not_used(search);
}

TEST(BetterCode, ServesSessionsOnSeveralThreads) {
  Search search;
  search.may_find = true;
  const auto program = program_with(search);
  std::vector<std::thread> threads;
  std::atomic<int> num_better{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Session session = session_of(program);
      std::uint64_t step = 0;
      num_better += wait_for([&] {
        const float value = decoded(session, step++);
        EXPECT_TRUE(value == 3 || value == 3 + kAdded) << value;
        return value != 3;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_better, 4);
}

}  // namespace
}  // namespace cinch::rt
