// Draws that tie: once in 65536 elements the first 16 bits do not decide, and whole rows go another
// way. Here all elements tie.
#include <algorithm>
#include <cmath>

#include "tests/programs/harness/gpu_session_fixture.h"

namespace cinch::testing {
namespace {

class GpuDrawsTest : public GpuSessionTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr std::int64_t kElems = 2 * 1024 + 77;

  std::vector<float> rounded(const std::vector<float>& values) {
    auto session = open_on_cpu(GetParam(), kElems);
    std::vector<float> out(values.size());
    EXPECT_TRUE(session.decode(encode_on_cpu(session, values, 0), out, 0));
    return out;
  }

  // The 16 bits with which each element is rounded, by bisection: a value from 0 goes up to 1 if
  // the bits are below its fraction.
  std::vector<std::uint32_t> halves() {
    std::vector<std::uint32_t> least(kElems), most(kElems, 65535);
    for (int i = 0; i < 16; ++i) {
      std::vector<float> values;
      for (std::size_t e = 0; e < least.size(); ++e) {
        const std::uint32_t middle = (least[e] + most[e] + 1) / 2;
        values.push_back(std::ldexp(static_cast<float>(middle), -16));
      }
      const std::vector<float> results = rounded(values);
      for (std::size_t e = 0; e < least.size(); ++e) {
        const std::uint32_t middle = (least[e] + most[e] + 1) / 2;
        (results[e] == 1 ? most[e] : least[e]) = results[e] == 1 ? middle - 1 : middle;
      }
    }
    return least;
  }
};

TEST_P(GpuDrawsTest, ties_are_broken_alike) {
  std::vector<float> values;
  for (const std::uint32_t half : halves()) {
    values.push_back(std::ldexp(static_cast<float>(half) + 0.5f, -16));
  }
  const std::vector<float> on_cpu = rounded(values);
  const auto ups = std::ranges::count(on_cpu, 1.0f);
  EXPECT_GT(ups, kElems / 3);
  EXPECT_LT(ups, 2 * kElems / 3);
  // One tie in a tile repeats all of it: one at a time, and all.
  for (const std::size_t spared : {std::size_t{0}, std::size_t{1500}}) {
    for (std::size_t e = 0; e < spared; ++e) {
      if (e != 700) values[e] = 1;
    }
    auto session = open(GetParam(), {kElems}, many_launches());
    const GpuAddress from = upload(values);
    const GpuPayload to = payload_for(session);
    ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, nullptr));
    const std::int64_t size = collect(session).payload_bytes;
    auto cpu = open_on_cpu(GetParam(), kElems);
    EXPECT_TRUE(download<std::uint8_t>(to.address, static_cast<std::size_t>(size)) ==
                encode_on_cpu(cpu, values, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuDrawsTest,
                         ::testing::Values("tied", "tied_within", "tied_float"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cinch::testing
