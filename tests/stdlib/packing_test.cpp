// Tests the packed fields of payloads bit by bit: Rice codes of gaps, the Elias delta codes of the
// literature, and words that a malicious sender made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tests/programs/harness/gradients.h"
#include "tests/stdlib/golden.h"

namespace cinch::testing {
namespace {

using ::testing::ElementsAre;
using Bytes = std::vector<std::uint8_t>;
using Words = std::vector<std::uint32_t>;

constexpr const char* kIndices = R"(
compressor indices {
  wire { count m <= n, index: [u32; m] CODE below n }
  encode(g: [f32; n]) { wire { index: nonzero(g != 0) } }
  decode(w) { scatter((w.index + 1) as f32, at: w.index, size: n) }
}
)";
constexpr const char* kNumbers = R"(
compressor numbers {
  wire { number: [u32; n] elias below 0xffffffff }
  encode(g: [f32; n]) { wire { number: g as u32 } }
  decode(w) { w.number as f32 }
}
)";

std::string text_of(const std::string& code) {
  std::string text = kIndices;
  return text.replace(text.find("CODE"), 4, code);
}

std::vector<float> mask_of(std::size_t size, const std::vector<std::size_t>& places) {
  std::vector<float> mask(size);
  for (std::size_t place : places) mask[place] = 1;
  return mask;
}

bool bit_of(const Words& words, std::size_t bit) {
  return ((words[bit / 32] >> bit % 32) & 1) != 0;
}

// The gaps are 3, 16, 0 and 38. For four indices below 64 a Rice code has 4 low bits. The unary
// parts are 0, 1, 0 and 2 zeros, each followed by a one: bits 0 to 6. The low bits 3, 0, 0 and 6
// start at bit 7.
TEST(PackedFields, RiceCodesToTheBit) {
  Golden program("indices", text_of("ascending"), {}, 64);
  program.encode(0, mask_of(64, {3, 20, 21, 60}));
  EXPECT_THAT(values_of<std::uint32_t>(program.bytes(0)),
              ElementsAre(0b1001101u | 3u << 7 | 6u << 19));
}

// Returns the code of each number as the literature writes it: the unary part, the bits of the
// length, then the bits of the number, highest bit first. The field stores these parts separately,
// lowest bit first.
std::vector<std::string> elias_codes(const Words& words, std::size_t num) {
  std::vector<std::size_t> zeros(num), width(num);
  std::vector<std::string> codes(num);
  std::size_t bit = 0;
  for (std::size_t i = 0; i < num; ++i) {
    for (; !bit_of(words, bit); ++bit) ++zeros[i];
    codes[i] = std::string(zeros[i], '0') + '1';
    ++bit;
  }
  const auto append = [&](std::size_t i, std::size_t count) {
    std::size_t value = 1;
    for (std::size_t b = count; b-- > 0;) {
      codes[i] += bit_of(words, bit + b) ? '1' : '0';
      value = 2 * value + (bit_of(words, bit + b) ? 1 : 0);
    }
    bit += count;
    return value;
  };
  for (std::size_t i = 0; i < num; ++i) width[i] = append(i, zeros[i]) - 1;
  for (std::size_t i = 0; i < num; ++i) append(i, width[i]);
  EXPECT_EQ(words.size(), (bit + 31) / 32);
  return codes;
}

TEST(PackedFields, EliasDeltaCodes) {
  Golden program("numbers", kNumbers, {}, 9);
  program.encode(0, {0, 1, 2, 3, 4, 7, 15, 16, 99});
  EXPECT_THAT(elias_codes(values_of<std::uint32_t>(program.bytes(0)), 9),
              ElementsAre("1", "0100", "0101", "01100", "01101", "00100000", "001010000",
                          "001010001", "00111100100"));
}

TEST(PackedFields, LargeNumbers) {
  Golden program("numbers", kNumbers, {}, 3);
  program.encode(0, {4294967040.0f, 0, 2147483648.0f});
  EXPECT_THAT(program.decoded(), ElementsAre(4294967040.0f, 0, 2147483648.0f));
}

TEST(PackedFields, ANumberAtTheLimitFailsTheCall) {
  std::string text = kNumbers;
  text.replace(text.find("0xffffffff"), 10, "7");
  Golden program("numbers", text, {}, 2);
  program.encode(0, {6, 0});
  const auto refused = program.session().encode(std::vector<float>{7, 0}, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, rt::ErrorKind::CheckFailed);
  EXPECT_EQ(refused.error().message, "field number: a number is not below its limit");
}

std::vector<std::vector<float>> masks(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  std::vector<std::vector<float>> all{mask_of(size, {}), std::vector<float>(size, 1),
                                      mask_of(size, {0}), mask_of(size, {size - 1})};
  for (double density : {0.001, 0.01, 0.1, 0.3, 0.5, 0.9}) {
    std::bernoulli_distribution is_set(density);
    all.emplace_back(size);
    for (float& x : all.back()) x = is_set(random) ? 1.0f : 0.0f;
  }
  all.emplace_back(size);  // ones, then only zeros
  std::fill_n(all.back().begin(), size / 3, 1.0f);
  return all;
}

// Each list of indices must decode to itself. Decoding also checks the size of the payload.
TEST(PackedFields, AnyIndices) {
  for (const char* code : {"ascending", "elias ascending"}) {
    for (std::size_t size : {1, 33, 5000}) {
      Golden program("indices", text_of(code), {}, size);
      for (const std::vector<float>& mask : masks(size)) {
        program.encode(0, mask);
        const std::vector<float> decoded = program.decoded();
        for (std::size_t i = 0; i < size; ++i) {
          ASSERT_EQ(decoded[i], mask[i] == 0 ? 0.0f : static_cast<float>(i + 1)) << code << size;
        }
      }
    }
  }
}

// The mask has a random thousandth of the elements. The number of such masks is 2 to the power of
// 11.40 bits per index, which no code can beat on average.
TEST(PackedFields, NearTheEntropy) {
  constexpr std::size_t kSize = 1 << 20, kNum = kSize / 1000;
  std::mt19937_64 random(3);
  std::vector<float> mask(kSize);
  std::size_t left = kNum;
  for (std::size_t i = 0; i < kSize; ++i) {
    if (random() % (kSize - i) >= left) continue;
    mask[i] = 1;
    --left;
  }
  Golden program("indices", text_of("ascending"), {}, kSize);
  program.encode(0, mask);
  const double bits = 8.0 * static_cast<double>(program.bytes(0).size()) / double{kNum};
  EXPECT_LT(bits, 11.6);
  EXPECT_GT(bits, 11.41);
}

// Decodes payloads with changed words. Each list of indices has only one valid encoding. So the
// reader must either reject the payload before it writes any output, or decode it to a list whose
// encoding is this payload.
class HostileWords {
 public:
  HostileWords(const std::string& code, std::size_t size)
      : program_("indices", text_of(code), {}, size), size_(size) {}

  void start(const std::vector<float>& mask) {
    program_.encode(0, mask);
    good_ = program_.payload();
    words_ = values_of<std::uint32_t>(program_.bytes(0));
  }
  const Words& words() const { return words_; }
  int accepted() const { return accepted_; }

  void attack(const Words& words) {
    const Bytes payload = with(words);
    std::vector<float> out(size_, -7.0f);
    const auto status = program_.session().decode(payload, out, 0);
    if (!status) {
      ASSERT_FALSE(status.error().message.empty());
      ASSERT_TRUE(std::all_of(out.begin(), out.end(), [](float x) { return x == -7.0f; }));
      return;
    }
    ++accepted_;
    for (std::size_t i = 0; i < size_; ++i) {
      ASSERT_TRUE(out[i] == 0 || out[i] == static_cast<float>(i + 1));
    }
    const auto again = program_.session().encode(out, 0);
    ASSERT_TRUE(again);
    ASSERT_EQ(Bytes(again->begin(), again->end()), payload);
  }

 private:
  // Returns the valid payload with its words replaced. The size, the count of words and the check
  // word match the new words.
  Bytes with(const Words& words) const {
    Bytes payload(good_.begin(), good_.begin() + 80);
    const auto num = static_cast<std::uint32_t>(words.size());
    const std::uint64_t size = 80 + 4 * words.size();
    std::memcpy(payload.data() + 56, &size, 8);
    std::memcpy(payload.data() + 68, &num, 4);
    payload.resize(size);
    if (!words.empty()) std::memcpy(payload.data() + 80, words.data(), 4 * words.size());
    const std::uint32_t check = rt::payload_check_word(payload, 2);
    std::memcpy(payload.data() + rt::kPayloadCheckOffset, &check, 4);
    return payload;
  }

  Golden program_;
  std::size_t size_;
  Bytes good_;
  Words words_;
  int accepted_ = 0;
};

TEST(PackedFields, HostileWords) {
  for (const char* code : {"ascending", "elias ascending"}) {
    SCOPED_TRACE(code);
    HostileWords victim(code, 1000);
    std::mt19937 random(11);
    for (const std::vector<float>& mask : masks(1000)) {
      victim.start(mask);
      const Words good = victim.words();
      victim.attack(good);
      for (std::size_t bit = 0; bit < 32 * good.size(); bit += 1 + good.size() / 4) {
        Words words = good;
        words[bit / 32] ^= 1u << bit % 32;
        victim.attack(words);
        words[random() % words.size()] ^= 1u << random() % 32;
        victim.attack(words);
      }
      for (std::uint32_t fill : {0u, 1u, 0x80000000u, 0xffffffffu}) {
        victim.attack(Words(good.size(), fill));
      }
      Words longer = good, shorter = good;
      longer.push_back(0);
      victim.attack(longer);
      longer.back() = 1;
      victim.attack(longer);
      if (!shorter.empty()) shorter.pop_back();
      victim.attack(shorter);
      victim.attack({});
      for (int round = 0; round < 50; ++round) {
        Words drawn(good.size());
        for (std::uint32_t& word : drawn) word = random();
        victim.attack(drawn);
      }
    }
    EXPECT_GT(victim.accepted(), 100);  // some changes encode other indices
  }
}

Golden library(const std::string& name, std::vector<std::pair<std::string, double>> bindings,
               std::size_t num_elems) {
  return {name, library_text("quantize/" + name + ".cinch"), std::move(bindings), num_elems};
}

// Both programs draw the same random numbers, so they must decode to the same values. Only their
// encodings differ.
TEST(QsgdElias, DecodesToWhatQsgdDecodesTo) {
  constexpr std::size_t kSize = 1500;
  Golden codes = library("qsgd_elias", {{"levels", 7}}, kSize);
  Golden fixed = library("qsgd", {{"bits", 4}, {"bucket", 512}}, kSize);
  for (const DataKind kind : {DataKind::Normal, DataKind::Sparse, DataKind::Zeros}) {
    const std::vector<float> g = make_gradient(kind, kSize, 4);
    codes.encode(0, g);
    fixed.encode(0, g);
    EXPECT_EQ(codes.decoded(), fixed.decoded());
  }
}

// Theorem 3.2 of the QSGD paper bounds the expected number of bits of a bucket of B elements with s
// levels. The test uses this bound without its o(1) terms.
TEST(QsgdElias, TakesNoMoreThanThePaperExpects) {
  constexpr std::size_t kBuckets = 64, kBucket = 512;
  const std::vector<float> g = make_gradient(DataKind::Normal, kBuckets * kBucket, 9);
  for (double s : {1.0, 4.0, 22.0}) {
    Golden program = library("qsgd_elias", {{"levels", s}}, g.size());
    program.encode(0, g);
    std::size_t bytes = 0;
    for (std::size_t field = 0; field < 4; ++field) bytes += program.bytes(field).size();
    const double root = std::sqrt(double{kBucket}), sent = s * (s + root);
    const double each = 3 + 1.5 * std::log2(2 * (s * s + kBucket) / sent);
    EXPECT_LT(8.0 * static_cast<double>(bytes), kBuckets * (each * sent + 32)) << s;
  }
}

}  // namespace
}  // namespace cinch::testing
