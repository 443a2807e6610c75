// Joins states of a piece of a tensor from those of other pieces (language.md, Pieces).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"

namespace cinch::rt {

/// Does every state have one element for each element of the gradient? States of pieces are then
/// slices of the tensor's states.
bool has_elementwise_states(const ProgramInfo& info);

/// States of consecutive elements from `first` on, as a state file.
struct StateSlice {
  std::int64_t first = 0, num_elems = 0;
  std::span<const std::uint8_t> states;
};

/// Returns `own` with its states replaced by those of `parts`, as far as these reach. Only for
/// programs with elementwise states. Errors: those of parse_states; InvalidArgument (states of
/// another program, parts that leave elements out, states whose elements are not whole bytes).
Result<std::vector<std::uint8_t>> join_slices(const StateSlice& own,
                                              std::span<const StateSlice> parts);

}  // namespace cinch::rt
