// Evaluates an image's formulas for one tensor, and limits them to what a tensor can need: a
// formula in a file may give anything.
#pragma once
#include <cstdint>

#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// No buffer of a tensor with less than 2^32 elements is larger.
inline constexpr std::int64_t kMaxBufferBytes = std::int64_t{1} << 44;
/// No kernel has more groups.
inline constexpr std::int64_t kMaxGroups = std::int64_t{1} << 40;

/// Does a buffer of the role hold a state, with the state's size?
inline bool is_state(BufferRole role) {
  return role == BufferRole::State || role == BufferRole::StateNext ||
         role == BufferRole::StateInPlace;
}

/// A buffer's bytes; 0 if the formula is negative: it may belong to a branch that is not taken.
/// Errors: those of the formula; Overflow (above kMaxBufferBytes, or more than a gradient or an
/// output of env.n elements has).
Result<std::int64_t> buffer_bytes(const ProgramImage& image, BufferIndex index, const HostEnv& env);

/// A kernel's groups; 0 if the formula is negative. Errors: those of the formula; Overflow (above
/// kMaxGroups).
Result<std::int64_t> kernel_groups(const ProgramImage& image, std::size_t kernel,
                                   const HostEnv& env);

}  // namespace cinch::rt
