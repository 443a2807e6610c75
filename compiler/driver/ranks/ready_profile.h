// Reads from a file when gradients become ready in a backward pass: CSV with a line of names
// (`name`, `numel`, and `ready_gap_us` or `ready_us`; other columns are ignored), or JSON, an array
// of objects with these keys.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace cinch::driver {

struct ReadyTensor {
  std::string name;
  std::int64_t num_elems = 0;
  double ready_seconds = 0;  // from the begin of the backward pass
};

// Tensors in the file's order, which is the order in which they become ready. Throws CommandError
// with the place (no such file, an invalid line, a time that falls, a tensor twice).
std::vector<ReadyTensor> read_profile(const std::string& path);

}  // namespace cinch::driver
