// What is measured on where no gradient is given.
#pragma once
#include <cstdint>
#include <vector>

namespace cinch::bench {

/// Normal, of standard deviation 0.01, the same always; repeats after 2^20 elements.
std::vector<float> made_up_gradient(std::int64_t num_elems);

}  // namespace cinch::bench
