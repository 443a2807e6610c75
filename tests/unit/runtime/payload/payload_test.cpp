// Payloads: the bytes that docs/payload.md fixes, and every way in which bytes can be wrong.
#include "runtime/payload/payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "runtime/core/hash.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::rt {
namespace {

using Bytes = std::vector<std::uint8_t>;

// wire { count m <= n, index: [u32; m], code: [u3; m], scale: [f32; 1] }, and a second program with
// a matrix of ascending indices: wire { index: [u16; 2, 3] }.
class PayloadTest : public testing::Test {
 protected:
  PayloadTest() {
    HostExprPool& e = *info.exprs;
    const HostExprId m = e.count(0, e.n());
    info.name = "sample";
    info.wire.counts = {{"m", e.n()}};
    info.wire.fields = {
        {"index", {kU32, 1, {m, {}}}, FieldSum::None, true, e.n()},
        {"code", {*make_uint(3), 1, {m, {}}}, FieldSum::None, false, std::nullopt},
        {"scale", {kF32, 1, {e.const_int(1), {}}}, FieldSum::None, false, std::nullopt}};
    expected.info = &info;
    expected.fingerprint = {0x1111222233334444, 0x5555666677778888};
    expected.decode_hash = 0x99;
    expected.env.n = expected.env.rows = 100;
  }

  PayloadHeader header() const {
    PayloadHeader made;
    made.fingerprint = expected.fingerprint;
    made.decode_hash = expected.decode_hash;
    made.rows = expected.env.rows;
    made.cols = expected.env.cols;
    return made;
  }

  Bytes write(std::vector<std::uint32_t> counts, const std::vector<Bytes>& fields,
              std::uint32_t flags = 0) const {
    const PayloadLayout layout = payload_layout(info, expected.env, counts).value();
    Bytes bytes(static_cast<std::size_t>(layout.size_bytes), 0xee);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::copy(fields[i].begin(), fields[i].end(), bytes.begin() + layout.fields[i].offset);
    }
    PayloadHeader made = header();
    made.flags = flags;
    write_payload_frame(bytes, made, counts, layout);
    return bytes;
  }
  Bytes sample() const {
    return write({3}, {{5, 0, 0, 0, 17, 0, 0, 0, 99, 0, 0, 0}, {0xd1, 0x01}, {0, 0, 0x80, 0x3f}});
  }

  // Changes bytes and corrects the check word, as an attacker would.
  static Bytes reworked(Bytes bytes, std::size_t at, std::uint8_t value,
                        std::size_t num_counts = 1) {
    bytes[at] = value;
    const std::uint32_t check = payload_check_word(bytes, num_counts);
    std::memcpy(bytes.data() + kPayloadCheckOffset, &check, 4);
    return bytes;
  }

  void expect_refused(const Bytes& bytes, const std::string& names,
                      ErrorKind kind = ErrorKind::CorruptPayload) const {
    const auto view = read_payload(bytes, expected);
    ASSERT_FALSE(view) << names;
    EXPECT_EQ(view.error().kind, kind) << view.error().message;
    EXPECT_NE(view.error().message.find(names), std::string::npos) << view.error().message;
  }

  ProgramInfo info;
  PayloadExpectation expected;
};

TEST_F(PayloadTest, BytesAreAsDocumented) {
  const Bytes bytes = sample();
  // Header 64, count 4, index at 80 (12 bytes), code at 96 (2 bytes), scale at 112 (4 bytes).
  ASSERT_EQ(bytes.size(), 116u);
  EXPECT_EQ(std::memcmp(bytes.data(), "CNCH\1\0\0\0\0\0\0\0", 12), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 16, "\x44\x44\x33\x33\x22\x22\x11\x11", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 24, "\x88\x88\x77\x77\x66\x66\x55\x55", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 32, "\x99\0\0\0\0\0\0\0", 8), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 40, "\x64\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 56, "\x74\0\0\0\0\0\0\0\3\0\0\0", 12), 0);
  for (std::size_t at : {68, 79, 92, 95, 98, 111}) EXPECT_EQ(bytes[at], 0) << at;
  Bytes covered(bytes.begin(), bytes.begin() + 12);
  covered.insert(covered.end(), bytes.begin() + 16, bytes.begin() + 68);
  std::uint32_t check = 0;
  std::memcpy(&check, bytes.data() + 12, 4);
  EXPECT_EQ(check, static_cast<std::uint32_t>(hash128(covered.data(), covered.size()).low));
}

TEST_F(PayloadTest, ReadsWhatWasWritten) {
  const Bytes bytes = sample();
  const auto view = read_payload(bytes, expected);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(view->counts, std::vector<std::uint32_t>{3});
  ASSERT_EQ(view->fields.size(), 3u);
  EXPECT_EQ(view->fields[0].data(), bytes.data() + 80);
  EXPECT_EQ(view->fields[0].size(), 12u);
  EXPECT_EQ(view->fields[1].size(), 2u);
  EXPECT_FALSE(view->header.is_non_finite());
}

TEST_F(PayloadTest, BoundsTakeEveryCountAtItsHighest) {
  const PayloadLayout bound = payload_bound_layout(info, expected.env).value();
  EXPECT_EQ(bound.fields[0].offset, 80);
  EXPECT_EQ(bound.fields[1].offset, 480);
  EXPECT_EQ(bound.fields[2].offset, 528);
  EXPECT_EQ(bound.size_bytes, 532);
}

TEST_F(PayloadTest, NoElementsAreAHeaderAlone) {
  expected.env.n = expected.env.rows = 0;
  const Bytes bytes = write({0}, {});
  ASSERT_EQ(bytes.size(), 64u);
  const auto view = read_payload(bytes, expected);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_TRUE(view->fields.empty());
}

TEST_F(PayloadTest, EveryFlippedBitOfHeaderAndCountsIsFound) {
  const Bytes bytes = sample();
  for (std::size_t bit = 0; bit < std::size_t{68} * 8; ++bit) {
    Bytes flipped = bytes;
    flipped[bit / 8] = static_cast<std::uint8_t>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(read_payload(flipped, expected)) << bit;
  }
}

TEST_F(PayloadTest, ErrorsNameWhatIsWrong) {
  const Bytes bytes = sample();
  expect_refused({}, "0 bytes");
  expect_refused(Bytes(bytes.begin(), bytes.begin() + 63), "63 bytes");
  expect_refused(reworked(bytes, 0, 'X'), "magic");
  expect_refused(reworked(bytes, 4, 2), "version 2", ErrorKind::VersionMismatch);
  expect_refused(reworked(bytes, 8, 2), "flags");
  expect_refused(reworked(bytes, 16, 0), "fingerprint");
  expect_refused(reworked(bytes, 32, 0), "decode hash");
  expect_refused(reworked(bytes, 40, 1), "shape [1, 1], expected [100, 1]");
  expect_refused(reworked(bytes, 48, 2), "shape [100, 2]");
  expect_refused(reworked(bytes, 56, 0), "header says 0 bytes, it has 116");
  expect_refused(reworked(bytes, 64, 101), "count m is 101, at most 100");
  expect_refused(reworked(bytes, 64, 50), "its shape and counts make");
  expect_refused(reworked(bytes, 64, 2), "byte 88 before field code is not zero");
  expect_refused(reworked(bytes, 70, 1), "before field index is not zero");
  expect_refused(reworked(bytes, 111, 1), "before field scale is not zero");
  expect_refused(reworked(bytes, 97, 0x03), "field code: bits behind its last element");
  expect_refused(reworked(bytes, 88, 100), "field index: element 2 is 100, must be below 100");
  expect_refused(reworked(bytes, 91, 0xff), "field index: element 2");
  expect_refused(reworked(bytes, 84, 5), "field index: element 1 is 5 after 5, must ascend");
  // A known flag, set without the check word: a marked payload has counts of 0.
  expect_refused(reworked(bytes, 8, 1), "count m is 3, at most 0");
}

TEST_F(PayloadTest, CutOrLongerBytesAreRefused) {
  const Bytes bytes = sample();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A buffer of exactly that size, so that a read beyond it is seen.
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(read_payload(cut, expected)) << size;
    if (size < 64) continue;
    Bytes honest = cut;
    std::memcpy(honest.data() + 56, &size, 8);
    EXPECT_FALSE(read_payload(honest, expected)) << size;
  }
  Bytes longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(read_payload(longer, expected));
}

TEST_F(PayloadTest, MarkedPayloadsKeepFixedFields) {
  const Bytes bytes = write({0}, {{}, {}, {0, 0, 0, 0}}, kPayloadNonFinite);
  const auto view = read_payload(bytes, expected);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_TRUE(view->header.is_non_finite());
  Bytes unmarked = bytes;
  unmarked[8] = 0;
  EXPECT_FALSE(read_payload(unmarked, expected));
}

TEST_F(PayloadTest, RowsOfAMatrixAscendEachForItself) {
  HostExprPool& e = *info.exprs;
  info.wire.counts.clear();
  info.wire.fields = {{"index",
                       {*make_uint(12), 2, {e.const_int(2), e.const_int(3)}},
                       FieldSum::None,
                       true,
                       e.const_int(4000)}};
  const auto pack = [](std::vector<unsigned> values) {
    Bytes bytes(9, 0);
    for (std::size_t bit = 0; bit < 72; ++bit) {
      if (values[bit / 12] >> bit % 12 & 1) {
        bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] | 1 << bit % 8);
      }
    }
    return bytes;
  };
  EXPECT_TRUE(read_payload(write({}, {pack({1, 2, 3999, 0, 1, 2})}), expected).has_value());
  expect_refused(write({}, {pack({1, 2, 2, 0, 1, 2})}), "element 2 is 2 after 2");
  expect_refused(write({}, {pack({1, 2, 3, 9, 1, 2})}), "element 4 is 1 after 9");
  expect_refused(write({}, {pack({1, 2, 4000, 0, 1, 2})}), "element 2 is 4000");
}

TEST_F(PayloadTest, RandomBytesBehindAGoodHeaderNeverPassTheirChecks) {
  std::mt19937 draw(9);
  const Bytes bytes = sample();
  for (int round = 0; round < 20000; ++round) {
    Bytes changed = bytes;
    for (int k = 0; k < 3; ++k) {
      changed[64 + draw() % (changed.size() - 64)] = static_cast<std::uint8_t>(draw());
    }
    const Bytes bytes_to_read = reworked(changed, 64, changed[64]);
    const auto view = read_payload(bytes_to_read, expected);
    if (!view) continue;
    std::uint32_t index[3];
    std::memcpy(index, view->fields[0].data(), 12);
    EXPECT_TRUE(index[0] < index[1] && index[1] < index[2] && index[2] < 100);
  }
}

TEST_F(PayloadTest, DecodeHashSeesWhatDecodeSees) {
  const std::uint64_t params[] = {1, 2};
  DecodeFacts facts{params, 4, 7, 8, 1, 2};
  const std::uint64_t plain = decode_hash(info, facts);
  facts.step = 9;
  EXPECT_EQ(decode_hash(info, facts), plain);
  info.decode_draws = true;
  const std::uint64_t drawing = decode_hash(info, facts);
  EXPECT_NE(drawing, plain);
  for (const auto& change : std::initializer_list<std::function<void(DecodeFacts&)>>{
           [](DecodeFacts& f) { f.step += 1; }, [](DecodeFacts& f) { f.seed += 1; },
           [](DecodeFacts& f) { f.tensor += 1; }, [](DecodeFacts& f) { f.piece += 1; }}) {
    DecodeFacts other = facts;
    change(other);
    EXPECT_NE(decode_hash(info, other), drawing);
  }
  facts.params = std::span(params).first(1);
  EXPECT_NE(decode_hash(info, facts), drawing);
}

}  // namespace
}  // namespace cinch::rt
