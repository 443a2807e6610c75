// Sessions on the emulated GPU as their callers use and misuse them: graphs, lists, element types,
// parameters, corrupt payloads. Results are a CPU session's, bit for bit.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "runtime/core/lang.h"
#include "tests/programs/harness/gpu_session_fixture.h"

namespace cinch::testing {
namespace {

using rt::ErrorKind;
using Bytes = std::vector<std::uint8_t>;

// ---- graphs ----

TEST_F(GpuSessionTest, a_captured_call_is_replayed_with_new_steps_and_parameters) {
  rt::GpuSessionOptions options;
  options.largest_parameters = {{"ratio", 0.05}};
  auto session = open("dgc", {3000}, options);
  auto cpu = open_on_cpu("dgc", 3000);
  const rt::GpuDriver& driver = device->driver();
  rt::GpuStream stream = nullptr;
  ASSERT_EQ(driver.stream_create(&stream, 1), 0);
  const GpuAddress from = allocate(std::size_t{3000} * 4);
  ASSERT_TRUE(session.set_parameter("ratio", 0.05));
  const GpuPayload to = payload_for(session);
  ASSERT_TRUE(session.set_parameter("ratio", 0.01));
  write(from, gradient(3000, 0));
  ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, stream));
  ASSERT_TRUE(cpu.set_parameter("ratio", 0.01));
  (void)encode_on_cpu(cpu, gradient(3000, 0), 0);

  ASSERT_EQ(driver.capture_begin(stream, 0), 0);
  ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, stream));
  rt::GpuGraph graph = nullptr;
  rt::GpuGraphExec exec = nullptr;
  ASSERT_EQ(driver.capture_end(stream, &graph), 0);
  ASSERT_EQ(driver.graph_instantiate(&exec, graph, 0), 0);
  for (std::uint64_t step = 1; step < 5; ++step) {
    const double ratio = step == 3 ? 0.05 : 0.01;
    ASSERT_TRUE(session.set_parameter("ratio", ratio));
    ASSERT_TRUE(cpu.set_parameter("ratio", ratio));
    const std::vector<float> values = gradient(3000, step);
    ASSERT_EQ(driver.stream_synchronize(stream), 0);
    write(from, values);
    ASSERT_TRUE(session.prepare(rt::EntryKind::Encode, step, stream));
    ASSERT_EQ(driver.graph_launch(exec, stream), 0);
    const auto outcome = session.collect(stream);
    ASSERT_TRUE(outcome) << outcome.error().message;
    ASSERT_TRUE(outcome->at(0).status) << outcome->at(0).status.error().message;
    const Bytes expected = encode_on_cpu(cpu, values, step);
    EXPECT_EQ(
        download<std::uint8_t>(to.address, static_cast<std::size_t>(outcome->at(0).payload_bytes)),
        expected)
        << step;
  }
  driver.graph_exec_destroy(exec);
  driver.graph_destroy(graph);
}

TEST_F(GpuSessionTest, prepares_only_calls_that_were_made) {
  auto session = open("started", {100});
  for (const auto kind : {rt::EntryKind::Encode, rt::EntryKind::Decode}) {
    const auto status = session.prepare(kind, 0, nullptr);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
  }
}

TEST_F(GpuSessionTest, capture_needs_a_call_with_the_same_memory_before) {
  auto session = open("onebit", {100});
  rt::GpuStream stream = nullptr;
  ASSERT_EQ(device->driver().stream_create(&stream, 1), 0);
  const GpuAddress from = upload(gradient(100));
  const GpuPayload to = payload_for(session);
  ASSERT_EQ(device->driver().capture_begin(stream, 0), 0);
  const auto status = session.encode({&from, 1}, {&to, 1}, 0, stream);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
}

// ---- lists ----

TEST_F(GpuSessionTest, small_tensors_take_one_launch) {
  rt::GpuSessionOptions f16;
  f16.dtype = kF16;
  for (const char* name : {"onebit", "topk", "dgc", "terngrad", "rounds"}) {
    for (const rt::GpuSessionOptions& options : {rt::GpuSessionOptions(), f16}) {
      const auto small = open(name, {8192, 1, 0, 700}, options);
      const auto large = open(name, {8193, 1, 0, 700}, options);
      for (const auto kind : {rt::EntryKind::Encode, rt::EntryKind::Decode}) {
        EXPECT_EQ(small.num_launches(kind), 1u) << name;
        EXPECT_GT(large.num_launches(kind), 1u) << name;
      }
    }
  }
}

// Steps that one block does go together where their neighbours do, too.
TEST_F(GpuSessionTest, finishing_steps_share_launches) {
  const auto session = open("onebit", {1 << 20});
  EXPECT_EQ(session.num_launches(rt::EntryKind::Encode), 2u);  // the sweep; scalars and the seal
  EXPECT_LE(open("topk", {1 << 20}).num_launches(rt::EntryKind::Encode), 31u);
}

// One launch more for a sweep that reduces, from the largest tensor on, and none where one block
// would do it: onebit's encode is then the sweep, the fold, and scalars with the seal.
TEST_F(GpuSessionTest, partials_of_large_tensors_are_folded) {
  constexpr std::int64_t kMost = rt::GpuTuning{}.fold_elements;
  const auto launches = [&](const std::vector<std::int64_t>& sizes,
                            const rt::GpuSessionOptions& options = {}) {
    return open("onebit", sizes, options).num_launches(rt::EntryKind::Encode);
  };
  EXPECT_EQ(launches({kMost}), 2u);
  EXPECT_EQ(launches({kMost + 1}), 3u);
  EXPECT_EQ(launches({0, 1, kMost + 1, 1025}), 3u);
  EXPECT_EQ(launches({kMost + 1}, many_launches()), 3u);
  rt::GpuSessionOptions always;
  always.tuning = rt::GpuTuning{.fold_elements = 0};
  EXPECT_EQ(launches({std::int64_t{1} << 23}, always), 2u);  // 8192 partials are one block's
  EXPECT_EQ(launches({(std::int64_t{1} << 23) + 1}, always), 3u);
  EXPECT_EQ(launches({3000}, always), 1u);
}

// One block zeroes a marked payload, along with its neighbours, up to 32 MiB; more have a launch.
TEST_F(GpuSessionTest, many_blocks_zero_a_large_marked_payload) {
  const auto narrow = open("bulky", {900}, many_launches());
  auto session = open("bulky", {1000}, many_launches());
  EXPECT_EQ(session.num_launches(rt::EntryKind::Encode),
            narrow.num_launches(rt::EntryKind::Encode) + 1);
  std::vector<float> values = gradient(1000);
  values[77] = INFINITY;
  const GpuAddress from = upload(values);
  const auto bound = static_cast<std::size_t>(*session.payload_bound(0));
  const GpuPayload to{upload(Bytes(bound, 0xff)), static_cast<std::int64_t>(bound)};
  ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, nullptr));
  EXPECT_TRUE(collect(session).non_finite);
  auto cpu = open_on_cpu("bulky", 1000);
  EXPECT_TRUE(download<std::uint8_t>(to.address, bound) == encode_on_cpu(cpu, values, 0));
}

TEST_F(GpuSessionTest, many_tensors_take_the_launches_of_one) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < 40; ++i) sizes.push_back(i * i * 7 % 1500);
  auto list = open("topk", sizes, many_launches());
  auto one = open("topk", {1500}, many_launches());
  for (const auto kind : {rt::EntryKind::Encode, rt::EntryKind::Decode, rt::EntryKind::Finish}) {
    EXPECT_GT(one.num_launches(kind), 0u);
    EXPECT_EQ(list.num_launches(kind), one.num_launches(kind));
  }
  std::vector<GpuAddress> from;
  std::vector<GpuPayload> to;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    // One after another in one bucket would do, too.
    from.push_back(sizes[t] == 0 ? 0 : upload(gradient(sizes[t], t)));
    to.push_back(payload_for(list, t));
  }
  const std::size_t before = emulator::driver_gpu().allocated_bytes();
  ASSERT_TRUE(list.encode(from, to, 4, nullptr));
  const auto outcomes = list.collect(nullptr);
  ASSERT_TRUE(outcomes) << outcomes.error().message;
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), before);
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    auto cpu = open_on_cpu("topk", sizes[t], static_cast<std::uint32_t>(t));
    const Bytes expected = encode_on_cpu(cpu, gradient(sizes[t], t), 4);
    ASSERT_EQ((*outcomes)[t].payload_bytes, static_cast<std::int64_t>(expected.size())) << t;
    EXPECT_EQ(download<std::uint8_t>(to[t].address, expected.size()), expected) << t;
  }
}

TEST_F(GpuSessionTest, tensors_may_lie_in_one_bucket_at_any_offset) {
  auto session = open("minmax", {1000, 77, 513});
  const std::vector<float> values = gradient(1700);
  const GpuAddress bucket = upload(values);
  const std::vector<std::size_t> offsets = {3, 1003, 1081};
  std::vector<GpuAddress> from;
  std::vector<GpuPayload> to;
  for (std::size_t t = 0; t < 3; ++t) {
    from.push_back(bucket + 4 * offsets[t]);
    to.push_back(payload_for(session, t));
  }
  ASSERT_TRUE(session.encode(from, to, 0, nullptr));
  ASSERT_TRUE(session.collect(nullptr));
  for (std::size_t t = 0; t < 3; ++t) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(offsets[t]);
    const std::vector<float> part(begin, begin + session.num_elems(t));
    auto cpu = open_on_cpu("minmax", session.num_elems(t), static_cast<std::uint32_t>(t));
    const Bytes expected = encode_on_cpu(cpu, part, 0);
    EXPECT_EQ(download<std::uint8_t>(to[t].address, expected.size()), expected) << t;
  }
}

// ---- element types ----

TEST_F(GpuSessionTest, takes_and_gives_f16_and_bf16) {
  for (const DType dtype : {kF16, kBF16}) {
    constexpr std::int64_t kElems = 1333;
    rt::GpuSessionOptions options;
    options.dtype = dtype;
    auto session = open("qsgd", {kElems}, options);
    auto cpu = open_on_cpu("qsgd", kElems);
    std::vector<std::uint16_t> halves;
    for (const float x : gradient(kElems)) {
      halves.push_back(dtype == kF16 ? lang::to_f16(x) : lang::to_bf16(x));
    }
    const GpuAddress from = upload(halves);
    const GpuPayload to = payload_for(session);
    ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 2, nullptr));
    const auto bytes = static_cast<std::size_t>(collect(session).payload_bytes);
    const auto expected = cpu.encode({halves.data(), dtype, kElems}, 2);
    ASSERT_TRUE(expected);
    EXPECT_EQ(download<std::uint8_t>(to.address, bytes), Bytes(expected->begin(), expected->end()));
    const GpuAddress out = allocate(2 * kElems);
    ASSERT_TRUE(session.decode({&to, 1}, {&out, 1}, 2, nullptr));
    EXPECT_TRUE(collect(session).status);
    std::vector<std::uint16_t> decoded(kElems);
    const Bytes payload(expected->begin(), expected->end());
    ASSERT_TRUE(cpu.decode(payload, {decoded.data(), dtype, kElems}, 2));
    EXPECT_EQ(download<std::uint16_t>(out, kElems), decoded);
  }
}

// An infinity also fails the check of the program's finish; the result is NaN, as on a CPU.
TEST_F(GpuSessionTest, a_non_finite_sum_of_halves_is_finished_as_nan) {
  constexpr std::int64_t kElems = 300;
  for (const bool is_infinite : {false, true}) {
    rt::GpuSessionOptions options;
    options.dtype = kF16;
    auto session = open("bounded", {kElems}, options);
    auto cpu = open_on_cpu("bounded", kElems);
    std::vector<float> sum(kElems, 1.5f);
    if (is_infinite) sum[17] = std::numeric_limits<float>::infinity();
    std::vector<std::uint16_t> expected(kElems, 7);
    ASSERT_TRUE(cpu.finish(sum, {expected.data(), kF16, kElems}, 0));
    const GpuAddress from = upload(sum), to = upload(std::vector<std::uint16_t>(kElems, 7));
    ASSERT_TRUE(session.finish({&from, 1}, {&to, 1}, 0, nullptr));
    EXPECT_TRUE(collect(session).status);
    EXPECT_EQ(download<std::uint16_t>(to, kElems), expected) << is_infinite;
  }
}

TEST_F(GpuSessionTest, adds_decoded_payloads) {
  // The first has a decode-add of its own, the second goes through scratch memory.
  for (const char* name : {"topk", "dgc", "qsgd", "onebit"}) {
    constexpr std::int64_t kElems = 700;
    auto session = open(name, {kElems});
    auto cpu = open_on_cpu(name, kElems);
    const Bytes payload = encode_on_cpu(cpu, gradient(kElems), 1);
    const GpuPayload from{upload(payload), static_cast<std::int64_t>(payload.size())};
    std::vector<float> sum = gradient(kElems, 9);
    const GpuAddress to = upload(sum);
    ASSERT_TRUE(session.decode_add({&from, 1}, {&to, 1}, 1, nullptr));
    EXPECT_TRUE(collect(session).status) << name;
    ASSERT_TRUE(cpu.decode_add(payload, sum, 1));
    EXPECT_EQ(download<float>(to, kElems), sum) << name;
  }
}

TEST_F(GpuSessionTest, states_move_between_devices) {
  auto session = open("dgc", {2000});
  auto cpu = open_on_cpu("dgc", 2000);
  (void)encode_on_cpu(cpu, gradient(2000, 1), 0);
  ASSERT_TRUE(session.set_states(0, cpu.states_as_bytes().value(), nullptr));
  const GpuAddress from = upload(gradient(2000, 2));
  const GpuPayload to = payload_for(session);
  ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 1, nullptr));
  const auto bytes = static_cast<std::size_t>(collect(session).payload_bytes);
  EXPECT_EQ(download<std::uint8_t>(to.address, bytes), encode_on_cpu(cpu, gradient(2000, 2), 1));
  const auto states = session.states_as_bytes(0, nullptr);
  ASSERT_TRUE(states);
  EXPECT_EQ(*states, cpu.states_as_bytes().value());
  const auto refused = session.set_states(0, Bytes(100, 1), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::CorruptFile);
}

// ---- payloads at fault ----

// Both devices accept the same payloads.
TEST_F(GpuSessionTest, refuses_the_payloads_that_a_cpu_refuses) {
  constexpr std::int64_t kElems = 900;
  for (const char* name : {"topk", "onebit", "threshold"}) {
    auto session = open(name, {kElems});
    auto cpu = open_on_cpu(name, kElems);
    const Bytes good = encode_on_cpu(cpu, gradient(kElems), 3);
    std::mt19937 random(7);
    const GpuAddress out = upload(std::vector<float>(kElems, -7.0f));
    for (int i = 0; i < 120; ++i) {
      Bytes bad = good;
      // Headers are a third of the hits.
      const std::size_t at = random() % (i % 3 == 0 ? std::size_t{72} : bad.size());
      bad[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
      if (i % 10 == 9) bad.resize(random() % bad.size());
      if (bad.empty()) continue;
      std::vector<float> decoded(kElems);
      const auto expected = cpu.decode(bad, decoded, 3);
      const bool is_good = expected.has_value();
      write(out, std::vector<float>(kElems, -7.0f));
      const GpuPayload from{upload(bad), static_cast<std::int64_t>(bad.size())};
      ASSERT_TRUE(session.decode({&from, 1}, {&out, 1}, 3, nullptr));
      const auto outcome = collect(session);
      EXPECT_EQ(outcome.status.has_value(), is_good) << name << " byte " << at;
      if (!is_good) {
        EXPECT_EQ(outcome.status.error().kind, expected.error().kind);
        decoded.assign(kElems, -7.0f);
      }
      EXPECT_EQ(bits(download<float>(out, kElems)), bits(decoded)) << name << " byte " << at;
    }
  }
}

TEST_F(GpuSessionTest, a_refused_payload_of_a_non_finite_gradient_leaves_the_output) {
  constexpr std::int64_t kElems = 90;
  auto session = open("threshold", {kElems});
  auto cpu = open_on_cpu("threshold", kElems);
  std::vector<float> values = gradient(kElems);
  values[5] = std::numeric_limits<float>::infinity();
  Bytes bad = encode_on_cpu(cpu, values, 0);
  bad[70] = 1;  // between the count and the first field
  std::vector<float> out(kElems, -7.0f);
  ASSERT_FALSE(cpu.decode(bad, out, 0));
  const GpuPayload from{upload(bad), static_cast<std::int64_t>(bad.size())};
  const GpuAddress to = upload(out);
  ASSERT_TRUE(session.decode({&from, 1}, {&to, 1}, 0, nullptr));
  EXPECT_FALSE(collect(session).status);
  EXPECT_EQ(download<float>(to, kElems), out);
}

TEST_F(GpuSessionTest, one_corrupt_payload_leaves_the_others_unharmed) {
  constexpr std::int64_t kElems = 500;
  auto session = open("topk", {kElems, kElems, kElems});
  std::vector<GpuPayload> from;
  std::vector<GpuAddress> to;
  std::vector<std::vector<float>> expected;
  for (std::uint32_t t = 0; t < 3; ++t) {
    auto cpu = open_on_cpu("topk", kElems, t);
    Bytes payload = encode_on_cpu(cpu, gradient(kElems, t), 0);
    expected.emplace_back(kElems, -7.0f);
    if (t != 1) ASSERT_TRUE(cpu.decode(payload, expected.back(), 0));
    if (t == 1) payload[20] ^= 0x01;  // its fingerprint
    from.push_back({upload(payload), static_cast<std::int64_t>(payload.size())});
    to.push_back(upload(std::vector<float>(kElems, -7.0f)));
  }
  ASSERT_TRUE(session.decode(from, to, 0, nullptr));
  const auto outcomes = session.collect(nullptr);
  ASSERT_TRUE(outcomes);
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_EQ((*outcomes)[t].status.has_value(), t != 1);
    EXPECT_EQ(download<float>(to[t], kElems), expected[t]);
  }
  // The failure is told once; the session works on.
  EXPECT_TRUE(session.collect(nullptr)->at(1).status);
}

// ---- misuse and faults ----

TEST_F(GpuSessionTest, refuses_parameters_beyond_what_it_was_opened_for) {
  auto session = open("topk", {10000});
  const auto status = session.set_parameter("ratio", 0.5);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::OutOfRange);
  EXPECT_FALSE(session.set_parameter("ratio", 7));
  EXPECT_FALSE(session.set_parameter("rato", 0.1));
  auto cpu = open_on_cpu("topk", 10000);
  const GpuAddress from = upload(gradient(10000));
  const GpuPayload to = payload_for(session);
  ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, nullptr));
  const auto bytes = static_cast<std::size_t>(collect(session).payload_bytes);
  EXPECT_EQ(download<std::uint8_t>(to.address, bytes), encode_on_cpu(cpu, gradient(10000), 0));
}

// Fewer rounds than asked for would be a wrong result.
TEST_F(GpuSessionTest, loops_have_the_rounds_that_the_parameters_of_now_ask_for) {
  rt::GpuSessionOptions options;
  options.largest_parameters = {{"times", 5}};
  auto session = open("rounds", {300}, options);
  const GpuAddress from = upload(gradient(300));
  const GpuPayload to = payload_for(session);
  for (const double times : {2, 5, 0, 3}) {
    ASSERT_TRUE(session.set_parameter("times", times));
    auto cpu = open_on_cpu("rounds", 300);
    ASSERT_TRUE(cpu.set_parameter("times", times));
    ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, nullptr));
    const auto bytes = static_cast<std::size_t>(collect(session).payload_bytes);
    EXPECT_EQ(download<std::uint8_t>(to.address, bytes), encode_on_cpu(cpu, gradient(300), 0))
        << times;
  }
  const auto status = session.set_parameter("times", 6);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::OutOfRange);
}

}  // namespace
}  // namespace cinch::testing
