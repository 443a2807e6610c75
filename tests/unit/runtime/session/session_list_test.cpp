// Lists of tensors: a list gives the same results as sessions of one tensor, whatever the threads
// do; all or nothing; one parallel run per call.
#include "runtime/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "hand_program.h"
#include "runtime/core/sanitizer.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

constexpr float kFailing = 12345.0f;  // fails a check of the hand program
constexpr HandOptions kAll = {.has_init = true, .has_decode_add = true, .has_finish = true};

std::shared_ptr<const LoadedProgram> hand_program(HandOptions hand = kAll) {
  auto program = LoadedProgram::load(hand_image(hand));
  EXPECT_TRUE(program);
  return *program;
}

// From none to 100k elements, large ones among small ones.
std::vector<std::int64_t> sizes_of_many() {
  std::vector<std::int64_t> sizes = {0, 1, 100000, 2, 1023, 0, 1024, 1025, 65536, 7};
  std::mt19937 random(5);
  while (sizes.size() < 300) sizes.push_back(static_cast<std::int64_t>(random() % 900));
  sizes[150] = 40000;
  sizes[299] = 30001;
  return sizes;
}

Floats list_gradient(std::int64_t n, std::size_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  Floats g(static_cast<std::size_t>(n));
  for (float& x : g) x = normal(random);
  return g;
}

SessionOptions common(std::uint32_t threads) {
  SessionOptions options;
  options.threads = threads;
  options.seed = 3;
  options.world = 2;
  options.groups_per_task = threads == 1 ? 0 : 1;  // many tasks, even of small tensors
  options.poison_memory = true;
  return options;
}

SessionList open_list(const std::vector<std::int64_t>& sizes, const SessionOptions& options,
                      HandOptions hand = kAll) {
  std::vector<ListTensor> tensors;
  for (const std::int64_t n : sizes) {
    tensors.push_back({.rows = n, .tensor = static_cast<std::uint32_t>(tensors.size())});
  }
  auto list = SessionList::open(hand_program(hand), options, tensors);
  EXPECT_TRUE(list) << (list ? "" : list.error().error.message);
  return std::move(*list);
}

// Gradients of all tensors, and the memory of a call on them.
struct Arrays {
  explicit Arrays(const std::vector<std::int64_t>& sizes, std::size_t seed = 0)
      : slots(sizes.size()) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      gradients.push_back(list_gradient(sizes[i], seed + i));
      outputs.emplace_back(gradients[i].size(), 77.0f);
    }
  }
  std::vector<ConstTensorView> inputs() const { return {gradients.begin(), gradients.end()}; }
  std::vector<TensorView> targets() { return {outputs.begin(), outputs.end()}; }
  std::vector<std::span<float>> spans() { return {outputs.begin(), outputs.end()}; }
  // Copies of the encoded payloads, which decode reads.
  std::vector<PayloadBytes> payloads() {
    copies.clear();
    for (const PayloadSlot& slot : slots) copies.emplace_back(slot.bytes.begin(), slot.bytes.end());
    return {copies.begin(), copies.end()};
  }

  std::vector<Floats> gradients, outputs;
  std::vector<PayloadSlot> slots;
  std::vector<Bytes> copies;
};

std::vector<Bytes> states_of(const SessionList& list) {
  std::vector<Bytes> states;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto bytes = list[i].state(0).value();
    states.emplace_back(bytes.begin(), bytes.end());
  }
  return states;
}

// All results of two steps, in order.
struct Results {
  std::vector<Bytes> payloads, states;
  std::vector<Floats> decoded, added, updates;
  bool operator==(const Results&) const = default;
};

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Results two_steps(SessionList& list, const std::vector<std::int64_t>& sizes) {
  Results results;
  for (std::uint64_t step = 0; step < 2; ++step) {
    Arrays arrays(sizes, step * 1000);
    const ListCall call{.step = step};
    EXPECT_TRUE(list.encode(call, arrays.inputs(), arrays.slots));
    const auto payloads = arrays.payloads();
    append(results.payloads, arrays.copies);
    EXPECT_TRUE(list.decode(call, payloads, arrays.targets()));
    append(results.decoded, arrays.outputs);
    EXPECT_TRUE(list.decode_add(call, payloads, arrays.spans()));
    append(results.added, arrays.outputs);
    EXPECT_TRUE(list.finish(call, arrays.spans(), arrays.targets()));
    append(results.updates, arrays.outputs);
  }
  results.states = states_of(list);
  return results;
}

// The same by sessions of one tensor, on one thread.
Results two_steps_alone(const std::vector<std::int64_t>& sizes) {
  Results results;
  results.states.resize(sizes.size());
  std::vector<Session> sessions;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    SessionOptions options = common(1);
    options.rows = sizes[i];
    options.tensor = static_cast<std::uint32_t>(i);
    sessions.push_back(*Session::open(hand_program(), options));
  }
  for (std::uint64_t step = 0; step < 2; ++step) {
    Arrays arrays(sizes, step * 1000);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      Session& session = sessions[i];
      Floats& out = arrays.outputs[i];
      const auto payload = session.encode(arrays.gradients[i], step);
      results.payloads.emplace_back(payload->begin(), payload->end());
      EXPECT_TRUE(session.decode(results.payloads.back(), out, step));
      results.decoded.push_back(out);
      EXPECT_TRUE(session.decode_add(results.payloads.back(), out, step));
      results.added.push_back(out);
      EXPECT_TRUE(session.finish(out, out, step));
      results.updates.push_back(out);
      const auto state = session.state(0).value();
      results.states[i].assign(state.begin(), state.end());
    }
  }
  return results;
}

TEST(SessionList, GivesWhatSessionsOfOneTensorGive) {
  const auto sizes = sizes_of_many();
  const Results expected = two_steps_alone(sizes);
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    SessionList list = open_list(sizes, common(threads));
    EXPECT_TRUE(two_steps(list, sizes) == expected) << threads << " threads";
  }
}

TEST(SessionList, ACallIsOneParallelRunHoweverManyTensors) {
  const auto regions_of_decode = [](const std::vector<std::int64_t>& sizes) {
    SessionList list = open_list(sizes, common(2));
    Arrays arrays(sizes);
    EXPECT_TRUE(list.encode({}, arrays.inputs(), arrays.slots));
    const auto payloads = arrays.payloads();
    const std::uint64_t before = list.num_regions();
    EXPECT_TRUE(list.decode({}, payloads, arrays.targets()));
    return list.num_regions() - before;
  };
  // With one large tensor each kernel is a parallel run; with many tensors all of them are one.
  EXPECT_GE(regions_of_decode({400000}), 1u);
  EXPECT_EQ(regions_of_decode({400000, 3}), 1u);
  EXPECT_EQ(regions_of_decode(sizes_of_many()), 1u);
  EXPECT_EQ(regions_of_decode({0}), 0u);
}

TEST(SessionList, TheFirstEntryThatFailsIsNamedAndNoStateChanges) {
  const auto sizes = sizes_of_many();
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    SessionList list = open_list(sizes, common(threads));
    Arrays arrays(sizes);
    ASSERT_TRUE(list.encode({}, arrays.inputs(), arrays.slots));
    const auto before = states_of(list);
    // The later one is larger, so it begins first.
    ASSERT_GT(sizes[57], 0);
    arrays.gradients[57][0] = arrays.gradients[150][9] = kFailing;
    const ListStatus failed = list.encode({.step = 1}, arrays.inputs(), arrays.slots);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().place, 57u);
    EXPECT_EQ(failed.error().error.kind, ErrorKind::CheckFailed);
    EXPECT_EQ(failed.error().error.message, "no 12345");
    EXPECT_EQ(states_of(list), before);
    arrays.gradients[57][0] = arrays.gradients[150][9] = 0;
    EXPECT_TRUE(list.encode({.step = 1}, arrays.inputs(), arrays.slots));
    EXPECT_NE(states_of(list), before);
  }
}

TEST(SessionList, PayloadsGoWhereThereIsRoom) {
  const std::vector<std::int64_t> sizes = {500, 30, 2000};
  SessionList list = open_list(sizes, common(2)), lending = open_list(sizes, common(2));
  Arrays arrays(sizes), lent(sizes);
  ASSERT_TRUE(lending.encode({}, lent.inputs(), lent.slots));
  std::vector<Bytes> rooms = {Bytes(5000), {}, Bytes(16)};
  for (std::size_t i = 0; i < rooms.size(); ++i) arrays.slots[i].room = rooms[i];
  const auto before = states_of(list);
  const ListStatus failed = list.encode({}, arrays.inputs(), arrays.slots);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().place, 2u);
  EXPECT_THAT(failed.error().error.message, HasSubstr("there are 16"));
  EXPECT_EQ(states_of(list), before);

  rooms[2].resize(20000);
  arrays.slots[2].room = rooms[2];
  ASSERT_TRUE(list.encode({}, arrays.inputs(), arrays.slots));
  EXPECT_EQ(arrays.slots[0].bytes.data(), rooms[0].data());
  EXPECT_EQ(arrays.slots[2].bytes.data(), rooms[2].data());
  lent.payloads(), arrays.payloads();
  EXPECT_EQ(arrays.copies, lent.copies);
}

TEST(SessionList, ACorruptPayloadIsNamed) {
  const auto sizes = sizes_of_many();
  SessionList list = open_list(sizes, common(5));
  Arrays arrays(sizes);
  ASSERT_TRUE(list.encode({}, arrays.inputs(), arrays.slots));
  const auto payloads = arrays.payloads();
  arrays.copies[8][kPayloadCheckOffset] ^= 1;
  arrays.copies[299][kPayloadCheckOffset] ^= 1;
  const ListStatus failed = list.decode({}, payloads, arrays.targets());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().place, 8u);
  EXPECT_EQ(failed.error().error.kind, ErrorKind::CorruptPayload);
  EXPECT_EQ(arrays.outputs[8], Floats(arrays.outputs[8].size(), 77.0f));
}

TEST(SessionList, SomeTensorsInAnyOrder) {
  const std::vector<std::int64_t> sizes = {100, 200, 300};
  SessionList list = open_list(sizes, common(2)), whole = open_list(sizes, common(2));
  Arrays all(sizes), some({300, 100});
  some.gradients = {all.gradients[2], all.gradients[0]};
  const auto before = states_of(list);
  const std::size_t which[] = {2, 0};
  ASSERT_TRUE(list.encode({.which = which}, some.inputs(), some.slots));
  ASSERT_TRUE(whole.encode({}, all.inputs(), all.slots));
  all.payloads(), some.payloads();
  EXPECT_EQ(some.copies[0], all.copies[2]);
  EXPECT_EQ(some.copies[1], all.copies[0]);
  EXPECT_EQ(states_of(list)[1], before[1]);
  EXPECT_NE(states_of(list)[2], before[2]);
}

TEST(SessionList, WhatIsNoListIsRefused) {
  const std::vector<std::int64_t> sizes = {100, 200};
  SessionList list = open_list(sizes, common(2));
  Arrays arrays(sizes);
  const auto refused = [&](std::span<const std::size_t> which, std::size_t count) {
    const auto inputs = arrays.inputs();
    return list.encode({.which = which}, std::span(inputs).first(count), arrays.slots).error();
  };
  const std::size_t beyond[] = {0, 2}, twice[] = {1, 1}, one[] = {1};
  EXPECT_EQ(refused(beyond, 2).error.kind, ErrorKind::OutOfRange);
  EXPECT_EQ(refused(beyond, 2).place, 1u);
  EXPECT_EQ(refused(twice, 2).error.kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(refused(twice, 2).place, 1u);
  EXPECT_EQ(refused({}, 1).place, kNoPlace);
  EXPECT_EQ(refused(one, 2).place, kNoPlace);
  std::vector<ListTensor> shapes = {{.rows = 4}, {.rows = -1}};
  const auto not_opened = SessionList::open(hand_program(), common(2), shapes);
  ASSERT_FALSE(not_opened);
  EXPECT_EQ(not_opened.error().place, 1u);
  SessionOptions too_many = common(kMaxThreads + 1);
  EXPECT_FALSE(SessionList::open(hand_program(), too_many, {}));
}

TEST(SessionList, CancellingEndsACallAndChangesNoState) {
  const auto sizes = sizes_of_many();
  std::atomic<bool> cancelled{true};
  SessionOptions options = common(3);
  options.cancelled = &cancelled;
  cancelled = false;
  SessionList list = open_list(sizes, options);
  Arrays arrays(sizes);
  bool was_stopped = false;
  for (int i = 0; i < 20; ++i) {
    const auto before = states_of(list);
    // Cancelled once before the call begins, otherwise somewhere within it or after it.
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * i));
      cancelled = true;
    });
    if (i == 0) other.join();
    const ListStatus status = list.encode({}, arrays.inputs(), arrays.slots);
    if (other.joinable()) other.join();
    cancelled = false;
    if (status) continue;
    was_stopped = true;
    EXPECT_EQ(status.error().error.kind, ErrorKind::Cancelled);
    EXPECT_LT(status.error().place, sizes.size());
    EXPECT_EQ(states_of(list), before);
  }
  EXPECT_TRUE(was_stopped);
  EXPECT_TRUE(list.encode({}, arrays.inputs(), arrays.slots));
}

// The thread that requests memory.
struct Asked {
  static void* allocate(void* context, std::size_t size, std::size_t alignment, MemoryUse) {
    auto& self = *static_cast<Asked*>(context);
    EXPECT_EQ(std::this_thread::get_id(), self.thread);
    ++self.times;
    return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  }
  static void release(void* context, void* memory, std::size_t, MemoryUse) {
    EXPECT_EQ(std::this_thread::get_id(), static_cast<Asked*>(context)->thread);
    std::free(memory);
  }
  std::thread::id thread = std::this_thread::get_id();
  int times = 0;
};

TEST(SessionList, MemoryOfSomebodyIsAskedForByTheCallersThread) {
  const auto sizes = sizes_of_many();
  for (const HandOptions hand : {kAll, HandOptions{}}) {
    Asked asked;
    SessionOptions options = common(5);
    options.memory = {{std::shared_ptr<void>(), &asked}, Asked::allocate, Asked::release};
    SessionList list = open_list(sizes, options, hand);
    Arrays arrays(sizes);
    std::vector<std::vector<std::uint16_t>> halves;
    std::vector<TensorView> targets;
    for (const std::int64_t n : sizes) {
      halves.emplace_back(static_cast<std::size_t>(n));
      targets.emplace_back(halves.back().data(), kF16, n);
    }
    int of_first_step = 0;
    for (std::uint64_t step = 0; step < 2; ++step) {
      const ListCall call{.step = step};
      ASSERT_TRUE(list.encode(call, arrays.inputs(), arrays.slots));
      const auto payloads = arrays.payloads();
      ASSERT_TRUE(list.decode(call, payloads, arrays.targets()));
      ASSERT_TRUE(list.decode(call, payloads, targets));
      ASSERT_TRUE(list.decode_add(call, payloads, arrays.spans()));
      ASSERT_TRUE(list.finish(call, arrays.spans(), arrays.targets()));
      ASSERT_TRUE(list.finish(call, arrays.spans(), targets));
      if (step == 0) of_first_step = asked.times;
    }
    EXPECT_GT(of_first_step, 0);
    // Under the sanitizer fields have memory of exactly their size.
    if (!kAddressSanitizer) {
      EXPECT_EQ(asked.times, of_first_step) << "of the first step alone";
    }
  }
}

}  // namespace
}  // namespace cinch::rt
