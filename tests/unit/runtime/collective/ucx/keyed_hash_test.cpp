// Keyed hashes against published values, and headers of messages that rely on them.
#include "runtime/transports/ucx/keyed_hash.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/transports/ucx/ucx_links.h"

namespace cinch::rt {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::span<const std::uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// FIPS 180-4's examples, and a million letters.
TEST(KeyedHash, Sha256IsThatOfTheStandard) {
  EXPECT_EQ(hex(sha256(bytes(""))),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// RFC 4231, test cases 1, 2 and 6.
TEST(KeyedHash, HmacIsThatOfTheStandard) {
  EXPECT_EQ(hex(keyed_hash(bytes(std::string(20, '\x0b')), bytes("Hi There"))),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(keyed_hash(bytes("Jefe"), bytes("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(keyed_hash(bytes(std::string(131, '\xaa')),
                           bytes("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// The example of the paper, appendix A.
TEST(KeyedHash, SipHashIsThatOfThePaper) {
  std::vector<std::uint8_t> message;
  for (std::uint8_t i = 0; i < 15; ++i) message.push_back(i);
  EXPECT_EQ(sip_hash({0x0706050403020100, 0x0f0e0d0c0b0a0908}, message), 0xa129ca6149be45e5U);
}

TEST(KeyedHash, PartsOfTextsKeepTheirEnds) {
  const auto of = [](std::string_view a, std::string_view b) {
    return keyed_hash(std::string_view("key"), HashedText(a).add(b));
  };
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(random_digest(), random_digest());
}

class Headers : public ::testing::Test {
 protected:
  MessageHeader signed_header(std::uint64_t number) const {
    MessageHeader header{1, MessageKind::Data, number, 6, 7, 1000, 500, 2000};
    header.hash = hash_of(keys[1], header);
    return header;
  }
  std::optional<MessageHeader> read(const MessageHeader& header, std::size_t size) const {
    std::vector<std::uint8_t> bytes(sizeof header + 8);
    std::memcpy(bytes.data(), &header, sizeof header);
    return read_header(std::span(bytes).first(size), keys);
  }
  const Digest job = sha256({});
  const std::vector<SipKey> keys{direction_key(job, 0, 2), direction_key(job, 1, 2),
                                 direction_key(job, 2, 2)};
};

TEST_F(Headers, AreThoseOfTheirSender) {
  const MessageHeader header = signed_header(3);
  const auto found = read(header, sizeof header);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->number, 3U);
  EXPECT_NE(direction_key(job, 0, 1), direction_key(job, 1, 0));
}

TEST_F(Headers, OfStrangersAreNone) {
  const MessageHeader right = signed_header(3);
  for (std::size_t size : {std::size_t{0}, sizeof right - 1, sizeof right + 1}) {
    EXPECT_FALSE(read(right, size)) << size;
  }
  for (std::size_t bit = 0; bit < 8 * sizeof right; ++bit) {
    MessageHeader changed = right;
    std::array<std::uint8_t, sizeof right> raw;
    std::memcpy(raw.data(), &changed, sizeof right);
    raw[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
    std::memcpy(&changed, raw.data(), sizeof right);
    EXPECT_FALSE(read(changed, sizeof right)) << "bit " << bit;
  }
}

TEST(SeenNumbersOf, MessagesCountOnce) {
  SeenNumbers seen;
  EXPECT_TRUE(seen.add(0));
  EXPECT_FALSE(seen.add(0));
  EXPECT_TRUE(seen.add(5));
  EXPECT_TRUE(seen.add(3));
  EXPECT_FALSE(seen.add(5));
  EXPECT_FALSE(seen.add(3));
  EXPECT_TRUE(seen.add(200));
  EXPECT_FALSE(seen.add(4));  // too old to be known
  EXPECT_TRUE(seen.add(200 - 63));
  EXPECT_FALSE(seen.add(200 - 63));
  EXPECT_TRUE(seen.add(UINT64_MAX - 1));
}

}  // namespace
}  // namespace cinch::rt
