// Payloads that are spread and joined on a device equal those of the host, byte for byte: for each
// type that is sent unchanged, for marks in each type, for NaNs of any form, and for marked
// payloads.
#include "runtime/sync/device/device_sums.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <random>

#include "runtime/core/lang.h"
#include "tests/collective/support/emulated_ranks.h"

namespace cinch::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Fields of the wire that are added up: the first one decides the type of the mark.
constexpr const char* kHalf = "half: [f16; n] by sum, ";
constexpr const char* kBrain = "brain: [bf16; n] by sum, ";
constexpr const char* kFull = "full: [f32; n] by sum, ";
using Fields = std::array<const char*, 3>;

std::string program_text(const Fields& fields) {
  std::string text = "compressor moved {\n  wire { ";
  for (const char* field : fields) text += field;
  text += R"(least: [f32; n] by min, most: f32 by max, level: [u8; n] by max }
  encode(g: [f32; n]) {
    wire { half: g as f16, brain: g as bf16, full: g, least: g, most: max(g),
           level: select(g > 0, 1, 0) as u8 }
  }
  decode(w) { w.half as f32 + w.brain as f32 + w.full + w.most }
}
)";
  return text;
}

// A payload in the memory of both, and its arrays.
struct Moved {
  rt::DeviceSum there;
  Bytes payload;
  std::vector<Bytes> arrays;
  std::vector<std::span<std::uint8_t>> spans() { return {arrays.begin(), arrays.end()}; }
  std::vector<std::span<const std::uint8_t>> const_spans() const {
    return {arrays.begin(), arrays.end()};
  }
};

class MovedPayloads : public ::testing::Test {
 protected:
  void SetUp() override {
    auto arrays = rt::GpuArrays::make(ranks.device({"onebit"}).programs[0], nullptr);
    ASSERT_TRUE(arrays) << arrays.error().message;
    on_arrays = std::make_unique<rt::GpuArrays>(std::move(*arrays));
  }
  void TearDown() override {
    memory.clear();
    on_arrays.reset();
  }

  std::span<std::uint8_t> upload(const Bytes& bytes) {
    if (bytes.empty()) return {};
    memory.push_back(*rt::GpuMemory::allocate(ranks.gpu(), bytes.size()));
    EXPECT_TRUE(ranks.gpu()->write(memory.back().address(), bytes, nullptr));
    auto* const at = reinterpret_cast<std::uint8_t*>(  // NOLINT(performance-no-int-to-ptr)
        memory.back().address());
    return {at, bytes.size()};
  }
  Bytes download(std::span<const std::uint8_t> from) {
    Bytes bytes(from.size());
    const auto at = reinterpret_cast<rt::GpuAddress>(from.data());
    if (!from.empty()) EXPECT_TRUE(ranks.gpu()->read(bytes, at, nullptr));
    return bytes;
  }
  Bytes random_bytes(std::size_t size) {
    Bytes bytes(size);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    return bytes;
  }

  void start(const std::string& text) {
    program = compiled_text("moved", text);
    ASSERT_NE(program, nullptr);
    summed = rt::SummedArrays::of(program->info(), 3);
    ASSERT_TRUE(summed);
  }

  Moved moved(std::int64_t elems, bool is_marked) {
    Moved made;
    const HostEnv env{.n = elems, .rows = 1, .cols = elems, .world = 3};
    made.there.layout = *rt::payload_layout(program->info(), env, {});
    made.there.header.rows = 1;
    made.there.header.cols = elems;
    made.there.header.decode_hash = 77;
    made.payload = random_bytes(static_cast<std::size_t>(made.there.layout.size_bytes));
    rt::PayloadHeader header = made.there.header;
    header.flags = is_marked ? rt::kPayloadNonFinite : 0;
    rt::write_payload_frame(made.payload, header, {}, made.there.layout);
    for (const rt::SumArray& array : summed->arrays(made.there.layout)) {
      made.arrays.push_back(random_bytes(static_cast<std::size_t>(array.size_bytes())));
    }
    made.there.payload = upload(made.payload);
    return made;
  }
  void upload_arrays(Moved& payload) {
    payload.there.arrays.clear();
    for (const Bytes& array : payload.arrays) payload.there.arrays.push_back(upload(array));
  }
  std::unique_ptr<rt::DeviceSums> open(const std::vector<Moved>& all) {
    rt::DeviceSumsRoom room{all.size(), 0};
    for (const Moved& each : all) room.payload_bytes += each.payload.size();
    return std::move(*rt::DeviceSums::make(*on_arrays, ranks.gpu(), nullptr, room));
  }

  EmulatedRanks ranks;
  std::unique_ptr<rt::GpuArrays> on_arrays;
  std::vector<rt::GpuMemory> memory;
  std::minstd_rand random{5};
  std::shared_ptr<const rt::LoadedProgram> program;
  std::optional<rt::SummedArrays> summed;
};

constexpr std::int64_t kSizes[] = {0, 1, 333, 5001};

void set_mark(Bytes& array, DType dtype, float value) {
  const std::uint32_t word =
      dtype == kF16 ? lang::to_f16(value) : std::bit_cast<std::uint32_t>(value);
  const std::size_t size = dtype.bits / 8;
  std::memcpy(array.data() + array.size() - size, &word, size);
}

TEST_F(MovedPayloads, AreThoseOfTheHost) {
  for (const Fields& fields :
       {Fields{kHalf, kBrain, kFull}, Fields{kBrain, kFull, kHalf}, Fields{kFull, kHalf, kBrain}}) {
    start(program_text(fields));
    ASSERT_TRUE(rt::DeviceSums::can_take(*summed)) << fields[0];
    std::vector<Moved> all;
    for (const std::int64_t elems : kSizes) {
      for (const bool is_marked : {false, true}) all.push_back(moved(elems, is_marked));
    }
    std::vector<rt::DeviceSum> there;
    for (Moved& each : all) {
      upload_arrays(each);
      there.push_back(each.there);
    }
    const auto sums = open(all);
    ASSERT_TRUE(sums->spread(*summed, there));
    for (Moved& each : all) {
      auto spans = each.spans();
      ASSERT_TRUE(summed->spread(each.payload, each.there.layout, spans));
      for (std::size_t i = 0; i < each.arrays.size(); ++i) {
        EXPECT_EQ(download(each.there.arrays[i]), each.arrays[i]) << fields[0] << ": array " << i;
      }
    }
  }
}

// Sums of any bits, and marks of no rank, of one, and of all.
TEST_F(MovedPayloads, JoinToThoseOfTheHost) {
  for (const Fields& fields : {Fields{kHalf, kBrain, kFull}, Fields{kFull, kBrain, kHalf}}) {
    start(program_text(fields));
    std::vector<Moved> all;
    std::vector<rt::DeviceSum> there;
    for (const std::int64_t elems : kSizes) {
      for (const float mark : {0.0f, 1.0f, 3.0f}) {
        Moved& each = all.emplace_back(moved(elems, mark == 3.0f));
        set_mark(each.arrays[summed->array_of_mark()], summed->type_of_mark(), mark);
        upload_arrays(each);
        there.push_back(each.there);
      }
    }
    const auto sums = open(all);
    ASSERT_TRUE(sums->join(*summed, there));
    for (Moved& each : all) {
      auto spans = each.const_spans();
      ASSERT_TRUE(summed->join(spans, each.there.layout, each.payload));
      EXPECT_EQ(download(each.there.payload), each.payload) << fields[0];
    }
  }
}

TEST_F(MovedPayloads, OfOtherTypesStayOnTheHost) {
  for (const std::string field : {"[f8e4m3; n] by sum", "[u8; n] by sum", "[f64; n] by sum"}) {
    std::string text = "compressor moved {\n  wire { value: ";
    text += field;
    text += " }\n  encode(g: [f32; n]) { wire { value: g as ";
    text += field.substr(1, field.find(';') - 1);
    text += " } }\n  decode(w) { w.value as f32 }\n}\n";
    start(text);
    EXPECT_FALSE(rt::DeviceSums::can_take(*summed)) << field;
  }
}

}  // namespace
}  // namespace cinch::testing
