#include "compiler/bench/made_up_gradient.h"

#include "runtime/core/lang.h"

namespace cinch::bench {

namespace {

constexpr std::size_t kPeriod = std::size_t{1} << 20;
constexpr float kDeviation = 0.01f;

}  // namespace

std::vector<float> made_up_gradient(std::int64_t num_elems) {
  const std::uint32_t words[lang::kDrawWords] = {1};
  const lang::DrawStream stream = lang::draw_stream(words, 0, false);
  std::vector<float> values(static_cast<std::size_t>(num_elems));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = i < kPeriod ? kDeviation * lang::normal(stream, static_cast<std::uint32_t>(i))
                            : values[i - kPeriod];
  }
  return values;
}

}  // namespace cinch::bench
