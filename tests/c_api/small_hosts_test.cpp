// Hosts with small stacks and with floating-point traps.
#include <fenv.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "support.h"
#include "tests/environment.h"

namespace {

using namespace cinch::testing;

constexpr std::size_t kStackBytes = std::size_t{128} << 10;
constexpr std::size_t kAllowedBytes = std::size_t{64} << 10;
constexpr unsigned char kUnused = 0xa5;

// The bytes of stack that `work` takes on a thread of 128 KiB.
std::size_t stack_of(const std::function<void()>& work) {
  auto* const stack = static_cast<unsigned char*>(
      ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::fill_n(stack, kStackBytes, kUnused);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, stack, kStackBytes);
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  EXPECT_EQ(::pthread_create(&thread, &attributes, run,
                             const_cast<void*>(static_cast<const void*>(&work))),
            0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  const unsigned char* const used =
      std::find_if(stack, stack + kStackBytes, [](unsigned char x) { return x != kUnused; });
  const auto size = static_cast<std::size_t>(stack + kStackBytes - used);
  ::munmap(stack, kStackBytes);
  return size;
}

// A vector, a session for it, and its payload.
struct Round {
  explicit Round(std::int32_t threads) { options.threads = threads; }

  cinch_tensor tensor() {
    auto made = sized<cinch_tensor>();
    made.data = values.data();
    made.dtype = CINCH_F32;
    made.num_dims = 1;
    made.shape = &length;
    return made;
  }
  void compile(const char* name) { program = cinch::testing::compile(name); }
  void open() {
    const cinch_tensor shape = tensor();
    cinch_session* opened = nullptr;
    status = cinch_session_open(program.get(), &options, &shape, 1, &opened, nullptr);
    session.reset(opened);
  }
  void encode() {
    const cinch_tensor gradient = tensor();
    status = cinch_encode(session.get(), 0, nullptr, 1, &gradient, &payload, nullptr);
  }
  void decode() {
    const cinch_tensor output = tensor();
    status = cinch_decode(session.get(), 0, nullptr, 1, &payload, &output, nullptr);
  }
  void finish() {
    const cinch_tensor sum = tensor();
    status = cinch_finish(session.get(), 0, nullptr, 1, &sum, &sum, nullptr);
  }

  std::int64_t length = 50'000;
  std::vector<float> values = std::vector<float>(50'000, 0.5F);
  cinch_session_options options = sized<cinch_session_options>();
  Program program;
  Session session;
  cinch_payload payload = sized<cinch_payload>();
  cinch_status status = CINCH_OK;
};

void expect_small(const char* what, Round& round, void (Round::*call)()) {
  EXPECT_LE(stack_of([&] { (round.*call)(); }), kAllowedBytes) << what;
  EXPECT_EQ(round.status, CINCH_OK) << what;
}

TEST(SmallHosts, CallsTakeLittleOfTheirStack) {
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "a sanitizer's frames are larger";
#endif
  for (const std::int32_t threads : {1, 2}) {
    for (const char* name : {"dgc", "qsgd_elias"}) {
      Round round(threads);
      EXPECT_LE(stack_of([&] { round.compile(name); }), kAllowedBytes) << name;
      ASSERT_NE(round.program, nullptr) << name;
      expect_small("open", round, &Round::open);
      expect_small("encode", round, &Round::encode);
      expect_small("decode", round, &Round::decode);
      expect_small("finish", round, &Round::finish);
    }
  }
}

std::int64_t resident_kilobytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return resident * 4;
}

// A service compiles what its users send, for ever.
TEST(SmallHosts, CompilationsKeepNothing) {
  if (!cinch::is_long_run()) GTEST_SKIP() << "in long runs";
  const auto compile_some = [](int from, int to) {
    for (int i = from; i < to; ++i) {
      const std::string text =
          "compressor c {\n  wire { v: [f32; n] }\n  encode(g: [f32; n]) { wire { v: g * " +
          std::to_string(i) + ".5 } }\n  decode(w) { w.v }\n}\n";
      ASSERT_NE(compile(nullptr, text.c_str()), nullptr);
    }
  };
  compile_some(0, 50);
  const std::int64_t before = resident_kilobytes();
  compile_some(50, 1050);
  EXPECT_LE(resident_kilobytes() - before, 5000) << "39,000 where each compilation kept 39 kB";
}

TEST(SmallHosts, TrapsAreMaskedAndComeBack) {
  const int traps = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_INEXACT | FE_UNDERFLOW;
  Round round(2);
  ::feenableexcept(traps);
  round.compile("qsgd");
  round.open();
  const bool is_open = round.status == CINCH_OK;
  if (is_open) round.encode();
  if (is_open) round.decode();
  const int after = ::fedisableexcept(FE_ALL_EXCEPT);
  EXPECT_EQ(after & traps, traps);
  ASSERT_TRUE(is_open);
  EXPECT_EQ(round.status, CINCH_OK);
}

}  // namespace
