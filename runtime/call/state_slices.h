// States of a piece of a tensor, put together from those of other pieces (language.md, Pieces).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"

namespace cinch::rt {

/// Has every state an element for each of the gradient's, so that states of pieces are slices of
/// the tensor's?
bool has_elementwise_states(const ProgramInfo& info);

/// States of so many elements from `first` on, as a state file.
struct StateSlice {
  std::int64_t first = 0, num_elems = 0;
  std::span<const std::uint8_t> states;
};

/// `own`, whose states are replaced by those of `parts`, as far as these reach. Programs with
/// elementwise states. Errors: those of parse_states; InvalidArgument (states of another program,
/// parts that leave elements out, states whose elements are not whole bytes).
Result<std::vector<std::uint8_t>> join_slices(const StateSlice& own,
                                              std::span<const StateSlice> parts);

}  // namespace cinch::rt
