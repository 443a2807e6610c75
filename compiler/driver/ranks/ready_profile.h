// When gradients become ready in a backward pass, as a file says it: CSV with a line of names
// (`name`, `numel`, and `ready_gap_us` or `ready_us`; other columns are not looked at), or JSON, an
// array of objects with these keys.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cinch::driver {

struct ReadyTensor {
  std::string name;
  std::int64_t num_elems = 0;
  double ready_seconds = 0;  // from the beginning of the backward pass
};

// In the order in which they become ready, as the file has them. Throws CommandError (no such file,
// a line that is none, a time that falls, a tensor twice: says where).
std::vector<ReadyTensor> read_profile(const std::string& path);

}  // namespace cinch::driver
