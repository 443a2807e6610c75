// Tensors and payloads in one buffer each: results equal those of calls on single tensors.
#include <gmock/gmock.h>

#include <array>

#include "support.h"

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kTensors = 4;
constexpr std::array<std::int64_t, kTensors> kSizes = {100, 0, 1, 777};

// A session of some tensors, one buffer of their gradients and one for payloads.
class CApiBuckets : public ::testing::Test {
 protected:
  Session open_four() {
    std::vector<cinch_tensor> tensors;
    for (const std::int64_t& size : kSizes) {
      auto tensor = sized<cinch_tensor>();
      tensor.num_dims = 1;
      tensor.shape = &size;
      tensors.push_back(tensor);
    }
    return open(program, tensors);
  }
  cinch_bucket bucket(std::vector<float>& values, const std::int64_t* offsets = nullptr) {
    auto made = sized<cinch_bucket>();
    made.data = values.data();
    made.num_elements = static_cast<std::int64_t>(values.size());
    made.offsets = offsets;
    return made;
  }
  cinch_arena arena() {
    auto made = sized<cinch_arena>();
    made.data = memory.data();
    made.capacity = memory.size();
    made.offsets = offsets.data();
    made.sizes = sizes.data();
    return made;
  }
  // Descriptors of the tensors of a packed buffer.
  std::vector<cinch_tensor> pieces(std::vector<float>& values) {
    std::vector<cinch_tensor> tensors;
    float* at = values.data();
    for (const std::int64_t& size : kSizes) {
      auto tensor = sized<cinch_tensor>();
      tensor.data = at;
      tensor.num_dims = 1;
      tensor.shape = &size;
      tensors.push_back(tensor);
      at += size;
    }
    return tensors;
  }
  std::string payload(std::size_t i) const {
    return {reinterpret_cast<const char*>(memory.data()) + offsets[i], sizes[i]};
  }

  Program program = compile("keeping.cinch", kKeeping);
  Tensor gradients{878, 3};
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(5000, 0xee);
  std::array<std::size_t, kTensors> offsets{}, sizes{};
  cinch_error error = sized<cinch_error>();
};

TEST_F(CApiBuckets, GiveWhatSingleTensorsGive) {
  const Session session = open_four(), expected = open_four();
  const cinch_bucket from = bucket(gradients.values());
  cinch_arena to = arena();
  for (std::uint64_t step = 0; step < 2; ++step) {
    ASSERT_EQ(CINCH_OK,
              cinch_encode_bucket(session.get(), step, nullptr, kTensors, &from, &to, &error))
        << error.message;
    const auto singles = encode(expected, step, pieces(gradients.values()));
    for (std::size_t i = 0; i < kTensors; ++i) {
      EXPECT_EQ(singles[i], payload(i));
      EXPECT_EQ(states_of(expected, i), states_of(session, i));
    }
  }
  EXPECT_EQ(0u, offsets[0]);
  EXPECT_EQ(0u, offsets[3] % 16);
  EXPECT_EQ(offsets[3] + sizes[3], to.size);

  std::vector<float> decoded(878), updates(878), single(878);
  const cinch_bucket out = bucket(decoded), update = bucket(updates);
  ASSERT_EQ(CINCH_OK, cinch_decode_bucket(session.get(), 1, nullptr, kTensors, &to, &out, &error));
  std::vector<cinch_payload> payloads;
  std::vector<std::string> copies;
  for (std::size_t i = 0; i < kTensors; ++i) copies.push_back(payload(i));
  for (std::string& copy : copies) payloads.push_back(payload_of(copy));
  const auto outputs = pieces(single);
  ASSERT_EQ(CINCH_OK, cinch_decode(expected.get(), 1, nullptr, kTensors, payloads.data(),
                                   outputs.data(), nullptr));
  EXPECT_EQ(single, decoded);
  ASSERT_EQ(CINCH_OK,
            cinch_finish_bucket(session.get(), 1, nullptr, kTensors, &out, &update, &error));
  EXPECT_EQ(single, updates);
  ASSERT_EQ(CINCH_OK,
            cinch_decode_add_bucket(session.get(), 1, nullptr, kTensors, &to, &out, &error));
  for (std::size_t i = 0; i < decoded.size(); ++i) EXPECT_EQ(2 * single[i], decoded[i]);
}

TEST_F(CApiBuckets, OffsetsMaySkipAndMixTensors) {
  const Session session = open_four(), expected = open_four();
  const std::size_t which[] = {3, 0};
  const std::int64_t at[] = {101, 0};
  const cinch_bucket from = bucket(gradients.values(), at);
  cinch_arena to = arena();
  ASSERT_EQ(CINCH_OK, cinch_encode_bucket(session.get(), 0, which, 2, &from, &to, &error))
      << error.message;
  const auto singles = encode(expected, 0, pieces(gradients.values()));
  EXPECT_EQ(singles[3], payload(0));
  EXPECT_EQ(singles[0], payload(1));
  EXPECT_EQ(states_of(expected, 3), states_of(session, 3));
}

TEST_F(CApiBuckets, WhatDoesNotFitIsNamed) {
  const Session session = open_four();
  const std::string before = states_of(session, 0);
  cinch_arena to = arena();
  const auto encoded = [&](const cinch_bucket& from) {
    return cinch_encode_bucket(session.get(), 0, nullptr, kTensors, &from, &to, &error);
  };
  std::vector<float> shorter(877);
  EXPECT_EQ(CINCH_OUT_OF_RANGE, encoded(bucket(shorter)));
  EXPECT_EQ(3u, error.tensor);
  const std::int64_t beyond[] = {0, 0, -1, 0};
  EXPECT_EQ(CINCH_OUT_OF_RANGE, encoded(bucket(gradients.values(), beyond)));
  EXPECT_EQ(2u, error.tensor);
  cinch_bucket wrong = bucket(gradients.values());
  wrong.dtype = static_cast<cinch_dtype>(9);
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encoded(wrong));
  wrong = bucket(gradients.values());
  wrong.device = CINCH_CUDA;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encoded(wrong));
  to.capacity = 300;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encoded(bucket(gradients.values())));
  EXPECT_THAT(error.message, HasSubstr("there are 300"));
  to = arena();
  to.sizes = nullptr;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, encoded(bucket(gradients.values())));
  EXPECT_EQ(before, states_of(session, 0));

  to = arena();
  sizes = {100, 100, 100, 100};
  offsets = {0, 0, 4990, 0};
  const cinch_bucket out = bucket(gradients.values());
  EXPECT_EQ(CINCH_OUT_OF_RANGE,
            cinch_decode_bucket(session.get(), 0, nullptr, kTensors, &to, &out, &error));
  EXPECT_EQ(2u, error.tensor);
  EXPECT_EQ(CINCH_OUT_OF_RANGE,
            cinch_decode_bucket(session.get(), 0, nullptr, kTensors + 1, &to, &out, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_finish_bucket(nullptr, 0, nullptr, kTensors, &out, &out, &error));
  EXPECT_EQ(CINCH_INVALID_ARGUMENT,
            cinch_finish_bucket(session.get(), 0, nullptr, kTensors, nullptr, &out, &error));
}

}  // namespace
}  // namespace cinch::testing
