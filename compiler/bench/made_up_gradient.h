// The gradient to measure with if none is given.
#pragma once
#include <cstdint>
#include <vector>

namespace cinch::bench {

/// Normal with standard deviation 0.01, always the same; repeats after 2^20 elements.
std::vector<float> made_up_gradient(std::int64_t num_elems);

}  // namespace cinch::bench
