// When gradients become ready in a backward pass, as it was measured. CSV, with a line of names:
//
//   # forward_us 5200                    lines that begin so are for people, but for two facts
//   # optimizer_us 900
//   name,shape,ready_us,spread_us
//   head.weight,1000x512,310,12
//
// or JSON: an array of objects with these keys, or an object with "tensors" and the two facts. A
// row has `numel` or `shape` ("1000x512", in JSON [1000, 512]) or both, and `ready_us`, since the
// backward pass began, or `ready_gap_us`, since the row before. Other columns are ignored.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"

namespace cinch::rt {

struct ReadyTensor {
  std::string name;
  std::int64_t num_elems = 0;
  std::vector<std::int64_t> shape;  // empty: not known
  double ready_seconds = 0;         // from the begin of the backward pass
  double spread_seconds = 0;        // between steps: the deviation that was measured
};

struct ReadyProfile {
  std::vector<ReadyTensor> tensors;  // in the order in which they become ready; one at least
  std::optional<double> forward_seconds, optimizer_seconds;
};

/// `name` is the file's, for messages. Errors: CorruptFile ("model.csv:3: b is there twice").
Result<ReadyProfile> parse_profile(std::string_view name, std::string_view text);

}  // namespace cinch::rt
