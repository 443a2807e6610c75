// The memory of a step's gradients and updates, which must not overlap: an update is written while
// other gradients, and other updates, may still be read.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

class StepMemory {
 public:
  /// Of the tensors of `plan`, which outlives this, on that rank.
  StepMemory(const Plan& plan, std::uint32_t rank);

  /// A step begins: nothing has been added.
  void clear() { num_added_ = 0; }
  /// Of one tensor; once a step. An update may be its gradient's memory, or where the rank has a
  /// part of the tensor that part of it. Errors: InvalidArgument (the update overlaps something
  /// else, or something overlaps it), which names both tensors.
  Status add(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);

 private:
  struct Range {
    std::uintptr_t begin = 0, end = 0;
    /// Nothing overlaps an empty range, wherever it lies.
    bool overlaps(const Range& other) const {
      return std::max(begin, other.begin) < std::min(end, other.end);
    }
  };
  struct Added {
    std::uint32_t tensor = 0;
    Range gradient, update;
  };
  static Range range_of(const ConstTensorView& view);
  /// Is the update the gradient's own memory, element by element?
  bool is_in_place(std::uint32_t tensor, const ConstTensorView& gradient,
                   const TensorView& update) const;

  const Plan& plan_;
  const std::uint32_t rank_;
  std::vector<Added> added_;
  std::size_t num_added_ = 0;
};

}  // namespace cinch::rt
