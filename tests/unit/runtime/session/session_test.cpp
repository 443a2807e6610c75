// Sessions over a hand-made program in a real shared object: steps with state, parameters, marked
// payloads, malicious payloads, states in files, tensors of all types.
#include "runtime/session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>

#include "hand_program.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/image/image_file.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> gradient_of(std::size_t n, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> g(n);
  for (float& x : g) x = normal(random);
  return g;
}

Session open(std::int64_t n, HandOptions hand = {}, SessionOptions options = {}) {
  options.rows = n;
  options.poison_memory = true;
  auto session = Session::open(hand_image(hand), options);
  EXPECT_TRUE(session) << (session ? "" : session.error().message);
  return std::move(*session);
}

std::vector<std::uint8_t> bytes_of(std::span<const std::uint8_t> view) {
  return {view.begin(), view.end()};
}
std::vector<float> state_of(const Session& session) {
  const auto bytes = session.state(0).value();
  std::vector<float> values(bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The correct results of the hand program's encode, in plain code.
struct Reference {
  std::vector<float> residual, decoded;
  std::vector<std::uint32_t> index;
  std::vector<float> value;

  void step(const std::vector<float>& g, float tau) {
    residual.resize(g.size(), 0);
    decoded.assign(g.size(), 0);
    index.clear();
    value.clear();
    for (std::uint32_t i = 0; i < g.size(); ++i) {
      const float x = g[i] + residual[i];
      residual[i] = std::fabs(x) >= tau ? 0 : x;
      if (std::fabs(x) < tau) continue;
      index.push_back(i);
      value.push_back(decoded[i] = x);
    }
  }
};

template <typename T>
std::span<const std::uint8_t> raw(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

TEST(Session, StepsWithStateForAllSizesAndThreads) {
  for (std::int64_t n : {1, 2, 31, 32, 33, 1023, 1024, 1025, 100003}) {
    for (std::uint32_t threads : {1u, 2u, 4u}) {
      SessionOptions options;
      options.threads = threads;
      Session session = open(n, {}, options);
      Reference reference;
      std::vector<float> out(static_cast<std::size_t>(n));
      for (std::uint64_t step = 0; step < 3; ++step) {
        const auto g = gradient_of(out.size(), static_cast<unsigned>(step));
        reference.step(g, 0.5f);
        const auto payload = session.encode(g, step);
        ASSERT_TRUE(payload) << payload.error().message;
        const auto expected = assemble_payload(
            {&session.info(), session.image().fingerprint,
             decode_hash(session.info(), {std::vector<std::uint64_t>{0x3fe0000000000000u}}),
             HostEnv{.n = n, .rows = n}},
            {false,
             {static_cast<std::uint32_t>(reference.index.size())},
             {raw(reference.index), raw(reference.value)}});
        ASSERT_TRUE(expected) << expected.error().message;
        ASSERT_EQ(bytes_of(*payload), *expected);
        EXPECT_LE(static_cast<std::int64_t>(payload->size()), *session.payload_bound(step));
        EXPECT_EQ(state_of(session), reference.residual);
        const auto copy = bytes_of(*payload);
        ASSERT_TRUE(session.decode(copy, std::span(out), step));
        EXPECT_EQ(out, reference.decoded);
      }
    }
  }
}

TEST(Session, NoElementsIsAHeaderAlone) {
  Session session = open(0);
  const auto payload = session.encode(std::span<const float>(), 0);
  ASSERT_TRUE(payload) << payload.error().message;
  EXPECT_EQ(payload->size(), 64u);
  EXPECT_EQ(*session.payload_bound(), 64);
  EXPECT_TRUE(session.decode(bytes_of(*payload), std::span<float>(), 0));
  EXPECT_TRUE(session.finish({}, std::span<float>(), 0));
}

TEST(Session, ParametersAreCheckedAndTakeEffect) {
  Session session = open(100);
  const Status high = session.set_parameter("tau", 4.5);
  ASSERT_FALSE(high);
  EXPECT_EQ(high.error().kind, ErrorKind::OutOfRange);
  EXPECT_EQ(high.error().message, "parameter tau = 4.5 is outside (0, 4]");
  EXPECT_FALSE(session.set_parameter("tau", 0));
  EXPECT_FALSE(session.set_parameter("tau", std::nan("")));
  const Status name = session.set_parameter("tua", 1);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().message, "no parameter tua; did you mean tau?");
  ASSERT_TRUE(session.set_parameter("tau", 4));
  const auto payload = session.encode(gradient_of(100), 0);
  ASSERT_TRUE(payload);
  EXPECT_EQ(read_payload_header(*payload)->payload_bytes, 80) << "nothing reaches 4";
  // With another value of tau, the same payload belongs to another program.
  const auto copy = bytes_of(*payload);
  ASSERT_TRUE(session.set_parameter("tau", 1));
  std::vector<float> out(100);
  EXPECT_THAT(session.decode(copy, std::span(out), 0).error().message, HasSubstr("decode hash"));
}

TEST(Session, NonFiniteGradientsMarkThePayloadAndKeepTheState) {
  for (float bad : {kInf, -kInf, std::nanf("")}) {
    Session session = open(2000);
    auto g = gradient_of(2000);
    ASSERT_TRUE(session.encode(g, 0));
    const auto before = state_of(session);
    g[1999] = bad;
    const auto payload = session.encode(g, 1);
    ASSERT_TRUE(payload) << payload.error().message;
    EXPECT_TRUE(read_payload_header(*payload)->is_non_finite());
    EXPECT_EQ(payload->size(), 80u);
    EXPECT_EQ(state_of(session), before);
    const auto copy = bytes_of(*payload);
    std::vector<float> out(2000, 1);
    ASSERT_TRUE(session.decode(copy, std::span(out), 1));
    for (float x : out) ASSERT_EQ(std::bit_cast<std::uint32_t>(x), 0x7fc00000u);
    std::vector<float> sum(2000, 1);
    ASSERT_TRUE(session.decode_add(copy, sum, 1));
    for (float x : sum) ASSERT_TRUE(std::isnan(x));
  }
}

TEST(Session, FailedChecksKeepTheState) {
  Session session = open(50);
  auto g = gradient_of(50);
  ASSERT_TRUE(session.encode(g, 0));
  const auto before = state_of(session);
  g[3] = 12345;
  const auto failed = session.encode(g, 1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::CheckFailed);
  EXPECT_EQ(failed.error().message, "no 12345");
  EXPECT_EQ(state_of(session), before);
  g[49] = kInf;
  const auto marked = session.encode(g, 1);
  ASSERT_TRUE(marked) << "a non-finite gradient comes before a failed check";
  EXPECT_TRUE(read_payload_header(*marked)->is_non_finite());
}

TEST(Session, WrongTensorsAreRefused) {
  Session session = open(10);
  const auto g = gradient_of(9);
  EXPECT_EQ(session.encode(g, 0).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(session.encode({g.data(), kF64, 10}, 0).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(session.encode({nullptr, kF32, 10}, 0).error().kind, ErrorKind::InvalidArgument);
  EXPECT_EQ(session.encode(gradient_of(10), UINT64_MAX).error().kind, ErrorKind::InvalidArgument);
  SessionOptions options;
  options.rows = 1 << 16;
  options.cols = 1 << 16;
  EXPECT_EQ(Session::open(hand_image(), options).error().kind, ErrorKind::InvalidArgument);
  options.cols = -1;
  EXPECT_EQ(Session::open(hand_image(), options).error().kind, ErrorKind::InvalidArgument);
  options.cols = 1;
  options.worker = 1;
  EXPECT_EQ(Session::open(hand_image(), options).error().kind, ErrorKind::InvalidArgument);
  options.worker = 0;
  options.threads = kMaxThreads + 1;
  EXPECT_EQ(Session::open(hand_image(), options).error().message, "1025 threads: at most 1024");
}

TEST(Session, HalfTensorsConvertOnLoadAndStore) {
  constexpr std::size_t kElems = 70001;
  // Values that both half types hold exactly.
  std::vector<float> g(kElems);
  for (std::size_t i = 0; i < kElems; ++i)
    g[i] = static_cast<float>(static_cast<int>(i % 17) - 8) / 4;
  Session plain = open(kElems);
  const auto expected = bytes_of(*plain.encode(g, 0));
  const auto to_bits = [](float x, DType dtype) -> std::uint16_t {
    return dtype == kF16 ? std::bit_cast<std::uint16_t>(static_cast<_Float16>(x))
                         : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  };
  for (DType dtype : {kF16, kBF16}) {
    std::vector<std::uint16_t> half(kElems), out(kElems), reference(kElems);
    for (std::size_t i = 0; i < kElems; ++i) half[i] = to_bits(g[i], dtype);
    Session session = open(kElems);
    const auto payload = session.encode({half.data(), dtype, kElems}, 0);
    ASSERT_TRUE(payload);
    EXPECT_EQ(bytes_of(*payload), expected);
    ASSERT_TRUE(session.decode(expected, {out.data(), dtype, kElems}, 0));
    for (std::size_t i = 0; i < kElems; ++i) {
      reference[i] = to_bits(std::fabs(g[i]) >= 0.5f ? g[i] : 0.0f, dtype);
    }
    EXPECT_EQ(out, reference);
  }
}

TEST(Session, DecodeAddIsDecodeThenAdd) {
  for (bool has_entry : {false, true}) {
    Session session = open(3000, {.has_decode_add = has_entry});
    const auto payload = bytes_of(*session.encode(gradient_of(3000), 0));
    std::vector<float> out(3000), sum = gradient_of(3000, 5), expected = sum;
    ASSERT_TRUE(session.decode(payload, std::span(out), 0));
    for (std::size_t i = 0; i < out.size(); ++i) expected[i] += out[i];
    ASSERT_TRUE(session.decode_add(payload, sum, 0));
    EXPECT_EQ(sum, expected);
  }
}

TEST(Session, FinishDividesUnlessTheProgramSaysOtherwise) {
  SessionOptions options;
  options.world = 4;
  Session plain = open(100, {}, options);
  std::vector<float> sum(100, 6), update(100);
  ASSERT_TRUE(plain.finish(sum, std::span(update), 0));
  EXPECT_THAT(update, Each(1.5f));
  Session custom = open(100, {.has_finish = true}, options);
  ASSERT_TRUE(custom.finish(sum, std::span(update), 0));
  EXPECT_THAT(update, Each(1.5f));
  ASSERT_TRUE(custom.finish(sum, std::span(sum), 1)) << "in place";
  EXPECT_THAT(sum, Each(2.5f));
  sum[7] = kInf;
  ASSERT_TRUE(custom.finish(sum, std::span(update), 2));
  for (float x : update) EXPECT_TRUE(std::isnan(x));
  EXPECT_THAT(state_of(custom), Each(2.0f)) << "a non-finite sum keeps the state";
}

TEST(Session, InitialValuesSeeSeedAndTensor) {
  SessionOptions options;
  options.seed = 5;
  options.tensor = 3;
  const Session session = open(1500, {.has_init = true}, options);
  EXPECT_THAT(state_of(session), Each(8.0f));
}

TEST(Session, StatesGoThroughFiles) {
  const auto path = std::filesystem::temp_directory_path() / "cinch_session_test.state";
  Session first = open(500);
  ASSERT_TRUE(first.encode(gradient_of(500), 0));
  ASSERT_TRUE(first.save_states(path));
  Session second = open(500);
  ASSERT_TRUE(second.load_states(path));
  EXPECT_EQ(state_of(second), state_of(first));
  EXPECT_EQ(bytes_of(*second.encode(gradient_of(500, 2), 1)),
            bytes_of(*first.encode(gradient_of(500, 2), 1)));
  Session other = open(501);
  EXPECT_THAT(other.load_states(path).error().message, HasSubstr("shape [500, 1]"));
  // Every truncation and every changed byte is an error that leaves the states unchanged.
  const auto before = state_of(second);
  const auto file = [&] {
    std::vector<std::uint8_t> bytes(std::filesystem::file_size(path));
    std::FILE* in = std::fopen(path.c_str(), "rb");
    EXPECT_EQ(std::fread(bytes.data(), 1, bytes.size(), in), bytes.size());
    std::fclose(in);
    return bytes;
  }();
  const auto try_load = [&](const std::vector<std::uint8_t>& bytes) {
    std::FILE* out = std::fopen(path.c_str(), "wb");
    std::fwrite(bytes.data(), 1, bytes.size(), out);
    std::fclose(out);
    return second.load_states(path);
  };
  for (std::size_t i = 0; i < 120; ++i) {
    auto changed = file;
    changed[i] ^= 1;
    EXPECT_FALSE(try_load(changed)) << i;
    EXPECT_FALSE(try_load({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(i)})) << i;
  }
  EXPECT_EQ(state_of(second), before);
  std::filesystem::remove(path);
}

TEST(Session, HostilePayloadsAreRefusedBeforeAnythingIsWritten) {
  constexpr std::size_t kElems = 300;
  Session session = open(kElems);
  const auto good = bytes_of(*session.encode(gradient_of(kElems), 0));
  const std::size_t m = read_payload(good, {&session.info(), session.image().fingerprint,
                                            read_payload_header(good)->decode_hash,
                                            HostEnv{.n = kElems, .rows = kElems}})
                            ->counts[0];
  std::vector<float> out(kElems, 42);
  const auto refused = [&](const std::vector<std::uint8_t>& bytes, const char* what) {
    const Status status = session.decode(bytes, std::span(out), 0);
    EXPECT_FALSE(status) << what;
    if (!status) EXPECT_THAT(status.error().message, HasSubstr(what));
    EXPECT_THAT(out, Each(42.0f));
  };
  for (std::size_t size = 0; size < good.size(); ++size) {
    refused({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, "payload");
  }
  auto longer = good;
  longer.resize(longer.size() + 4, 0);
  refused(longer, "header says");
  const std::int64_t grown = static_cast<std::int64_t>(longer.size());
  std::memcpy(longer.data() + 56, &grown, 8);
  refused(longer, "check word");
  const std::uint32_t forged = payload_check_word(longer, 1);
  std::memcpy(longer.data() + kPayloadCheckOffset, &forged, 4);
  refused(longer, "its shape and counts make");
  for (std::size_t bit = 0; bit < 8 * (68 + 12 + 4 * m); ++bit) {
    auto changed = good;
    changed[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    if (bit / 8 < 80) {
      refused(changed, "payload");
      continue;
    }
    // An index may change to another that still ascends and fits; it then decodes within bounds.
    std::vector<float> other(kElems);
    const Status status = session.decode(changed, std::span(other), 0);
    if (!status) EXPECT_THAT(status.error().message, HasSubstr("field index: element"));
  }
  auto large = good;
  const std::uint32_t beyond = kElems;
  std::memcpy(large.data() + 80 + 4 * (m - 1), &beyond, 4);
  refused(large, "must be below 300");
  auto twice = good;
  std::memcpy(twice.data() + 84, twice.data() + 80, 4);
  refused(twice, "must ascend");
}

TEST(Session, RunsAnImageFromItsFile) {
  const auto image = read_image(write_image(hand_image()));
  ASSERT_TRUE(image);
  SessionOptions options;
  options.rows = 64;
  auto session = Session::open(*image, options);
  ASSERT_TRUE(session) << session.error().message;
  Session plain = open(64);
  EXPECT_EQ(bytes_of(*session->encode(gradient_of(64), 0)),
            bytes_of(*plain.encode(gradient_of(64), 0)));
}

TEST(Session, OpensOnlyWhatItCanRun) {
  ProgramImage image = hand_image();
  image.kernels[1].symbol = "absent";
  EXPECT_THAT(Session::open(image, {}).error().message, HasSubstr("absent"));
  image = hand_image();
  image.binary.resize(100);
  EXPECT_EQ(Session::open(image, {}).error().kind, ErrorKind::CorruptFile);
  image = hand_image();
  image.target = "cuda:sm_90";
  image.gpu_steps_threads = 32;
  for (KernelInfo& kernel : image.kernels)
    kernel.cuda = {.block_threads = 32, .groups_per_block = 1, .resident_blocks = 1};
  EXPECT_EQ(Session::open(image, {}).error().kind, ErrorKind::Unavailable);
  image = hand_image();
  image.buffers[0].role_index = 0;
  image.buffers[3].role_index = 9;
  EXPECT_EQ(Session::open(image, {}).error().kind, ErrorKind::CorruptFile);
}

TEST(Session, CallsThatAProgramDoesNotHaveAreErrors) {
  Session whole = open(100);
  const auto payload = bytes_of(*whole.encode(gradient_of(100), 0));
  ProgramImage image = hand_image();
  image.entries[static_cast<std::size_t>(EntryKind::Encode)] = {};
  image.entries[static_cast<std::size_t>(EntryKind::Decode)] = {};
  auto session = Session::open(std::move(image), {.rows = 100});
  ASSERT_TRUE(session);
  std::vector<float> values(100, 7.0f);
  const auto expect_refused = [&](const Status& status, const char* message) {
    ASSERT_FALSE(status) << message;
    EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
    EXPECT_EQ(status.error().message, message);
    EXPECT_THAT(values, Each(7.0f));
  };
  EXPECT_EQ(session->encode(values, 0).error().message, "hand has no encode");
  expect_refused(session->decode(payload, TensorView(std::span(values)), 0), "hand has no decode");
  expect_refused(session->decode_add(payload, values, 0), "hand has no decode");
  expect_refused(session->finish(values, TensorView(std::span(values)), 0), "hand has no finish");
  for (const EntryKind kind : {EntryKind::Encode, EntryKind::Decode, EntryKind::DecodeAdd}) {
    EXPECT_FALSE(session->reserve(kind, kF32, false, 0));
  }
}

TEST(Session, CancelsAndGoesOn) {
  std::atomic<bool> cancelled{true};
  SessionOptions options;
  Session session = open(100);
  options.cancelled = &cancelled;
  options.rows = 100;
  auto stopped = Session::open(hand_image(), options);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->encode(gradient_of(100), 0).error().kind, ErrorKind::Cancelled);
  EXPECT_THAT(state_of(*stopped), Each(0.0f));
  cancelled = false;
  EXPECT_EQ(bytes_of(*stopped->encode(gradient_of(100), 0)),
            bytes_of(*session.encode(gradient_of(100), 0)));
}

}  // namespace
}  // namespace cinch::rt
