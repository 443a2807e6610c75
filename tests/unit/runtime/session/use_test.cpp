// A session that two threads use at once: the second call is an error and changes nothing.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>

#include "hand_program.h"
#include "runtime/session/session.h"
#include "tests/two_threads.h"

namespace cinch::rt {
namespace {

// Was the call rejected because of another one?
template <typename T>
bool is_refused(const Result<T>& result) {
  if (result) return false;
  EXPECT_EQ(result.error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(result.error().message,
            "the session is in use by another thread: it takes one call at a time");
  return true;
}

SessionOptions options_for(std::int64_t n) {
  SessionOptions options;
  options.rows = n;
  options.threads = 1;
  return options;
}

// Memory whose next request, in the middle of a call, calls `meanwhile`.
struct Interruption {
  std::function<void()> meanwhile;

  MemorySource source() {
    return {{std::shared_ptr<void>(), this},
            [](void* context, std::size_t size, std::size_t alignment, MemoryUse) {
              auto& self = *static_cast<Interruption*>(context);
              if (const auto call = std::exchange(self.meanwhile, nullptr)) {
                std::thread(call).join();
              }
              return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
            },
            [](void*, void* memory, std::size_t, MemoryUse) { std::free(memory); }};
  }
};

TEST(Use, EveryCallOfASessionIsRefusedWhileAnotherRuns) {
  Interruption interruption;
  SessionOptions options = options_for(1000);
  options.memory = interruption.source();
  auto session = Session::open(hand_image({.has_decode_add = true, .has_finish = true}), options);
  ASSERT_TRUE(session) << session.error().message;
  const std::vector<float> gradient(1000, 0.25f);
  std::vector<float> out(1000);
  bool was_called = false;
  interruption.meanwhile = [&] {
    was_called = true;
    const std::vector<std::uint8_t> bytes(64);
    PayloadLayout layout;
    EXPECT_TRUE(is_refused(session->encode(gradient, 1)));
    EXPECT_TRUE(is_refused(session->decode(bytes, std::span(out), 1)));
    EXPECT_TRUE(is_refused(session->decode_add(bytes, out, 1)));
    EXPECT_TRUE(is_refused(session->finish(gradient, std::span(out), 1)));
    EXPECT_TRUE(is_refused(session->begin_sync(gradient, std::span(out), 1)));
    EXPECT_TRUE(is_refused(session->continue_sync(RankStatus::Good)));
    EXPECT_TRUE(is_refused(session->reserve(EntryKind::Decode, kF32, false, 1)));
    EXPECT_TRUE(is_refused(session->set_parameter("tau", 1)));
    EXPECT_TRUE(is_refused(session->set_tuning({})));
    EXPECT_TRUE(is_refused(session->payload_bound()));
    EXPECT_TRUE(is_refused(session->lay_out_payload(0, layout)));
    EXPECT_TRUE(is_refused(session->workspace_bytes()));
    EXPECT_TRUE(is_refused(session->last_accesses()));
    EXPECT_TRUE(is_refused(session->take_back()));
    EXPECT_TRUE(is_refused(session->keep_states()));
    EXPECT_TRUE(is_refused(session->take_back_states()));
    EXPECT_TRUE(is_refused(session->state(0)));
    EXPECT_TRUE(is_refused(session->set_state(0, bytes)));
    EXPECT_TRUE(is_refused(session->states_as_bytes()));
    EXPECT_TRUE(is_refused(session->set_states(bytes)));
    EXPECT_TRUE(is_refused(session->save_states("never_written")));
  };
  ASSERT_TRUE(session->encode(gradient, 0));
  EXPECT_TRUE(was_called);
  EXPECT_TRUE(session->payload_bound()) << "nobody uses it now";
  const auto state = session->state(0);
  ASSERT_TRUE(state);
  float first = 0;
  std::memcpy(&first, state->data(), sizeof first);
  EXPECT_EQ(first, 0.25f) << "the residual of one call";
}

TEST(Use, OneSessionFromTwoThreads) {
  auto session = Session::open(hand_image({.has_decode_add = true}), options_for(20000));
  ASSERT_TRUE(session);
  const std::vector<float> gradient(20000, 0.75f);
  testing::call_from_two_threads(50, [&](int thread, int turn) {
    switch ((turn + thread) % 4) {
      case 0:
        return !is_refused(session->encode(gradient, static_cast<std::uint64_t>(turn)));
      case 1:
        return !is_refused(session->set_parameter("tau", 0.5 + thread));
      case 2:
        return !is_refused(session->states_as_bytes());
      default:
        return !is_refused(session->payload_bound());
    }
  });
}

TEST(Use, OneListFromTwoThreads) {
  const auto program = LoadedProgram::load(hand_image({}));
  ASSERT_TRUE(program);
  const std::vector<ListTensor> tensors = {{.rows = 10000}, {.rows = 30}};
  auto list = SessionList::open(*program, options_for(0), tensors);
  ASSERT_TRUE(list);
  const std::vector<float> large(10000, 0.75f), small(30, 0.75f);
  const std::vector<ConstTensorView> gradients = {large, small};
  testing::call_from_two_threads(50, [&](int thread, int turn) {
    if (turn % 2 == 0) return !is_refused(list->set_parameter("tau", 0.5 + thread));
    std::vector<PayloadSlot> payloads(2);
    const auto status = list->encode({static_cast<std::uint64_t>(turn), {}}, gradients, payloads);
    return !is_refused(status ? Status(Ok{}) : Status(tl::unexpected(status.error().error)));
  });
}

// Memory that throws what standard functions throw.
template <typename Thrown>
MemorySource throwing() {
  return {nullptr,
          [](void*, std::size_t, std::size_t, MemoryUse) -> void* {
            if constexpr (std::is_same_v<Thrown, std::system_error>) {
              throw std::system_error(std::make_error_code(std::errc::no_lock_available), "a lock");
            } else {
              throw Thrown("nothing there");
            }
          },
          [](void*, void*, std::size_t, MemoryUse) {}};
}

template <typename Thrown>
Error error_of_opening() {
  SessionOptions options = options_for(1000);
  options.memory = throwing<Thrown>();
  const auto session = Session::open(hand_image({}), options);
  EXPECT_FALSE(session);
  return session ? Error{} : session.error();
}

TEST(Use, NothingIsThrownPastASession) {
  const Error system = error_of_opening<std::system_error>();
  EXPECT_EQ(system.kind, ErrorKind::Unavailable);
  EXPECT_EQ(system.native_code, ENOLCK);
  const Error range = error_of_opening<std::out_of_range>();
  EXPECT_EQ(range.kind, ErrorKind::Internal);
  EXPECT_EQ(range.message, "nothing there");
  EXPECT_EQ(error_of_opening<std::string>().kind, ErrorKind::Internal);
}

}  // namespace
}  // namespace cinch::rt
