// Checks that the gradients and updates of a step do not overlap: an update is written while other
// gradients and updates may still be read.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <vector>

#include "runtime/call/tensor_view.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

class StepMemory {
 public:
  /// For the tensors of `plan`, which outlives this, on one rank.
  StepMemory(const Plan& plan, std::uint32_t rank);

  /// Begins a step: forgets all tensors.
  void clear();
  /// Adds one tensor, once a step. An update may be its gradient's memory; if the rank has a part
  /// of the tensor, the update may be that part of the gradient. Errors: InvalidArgument (the
  /// update overlaps other memory of the step; names both tensors).
  Status add(std::uint32_t tensor, const ConstTensorView& gradient, const TensorView& update);

 private:
  struct Range {
    std::uintptr_t begin = 0, end = 0;
    /// An empty range overlaps nothing, wherever it lies.
    bool overlaps(const Range& other) const {
      return std::max(begin, other.begin) < std::min(end, other.end);
    }
  };
  struct Added {
    std::uint32_t tensor = 0;
    Range gradient, update;
  };
  // Memory that some tensors have taken.
  class Ranges {
   public:
    explicit Ranges(std::pmr::memory_resource* nodes) : ends_(nodes) {}
    bool overlap(const Range& range) const;
    void add(Range range);
    void clear() { ends_.clear(); }

   private:
    std::pmr::map<std::uintptr_t, std::uintptr_t> ends_;  // by beginning; they do not meet
  };
  static Range range_of(const ConstTensorView& view);
  /// Is the update the gradient's own memory, element by element?
  bool is_in_place(std::uint32_t tensor, const ConstTensorView& gradient,
                   const TensorView& update) const;

  const Plan& plan_;
  const std::uint32_t rank_;
  std::vector<Added> added_;
  std::size_t num_added_ = 0;
  // A step allocates nothing.
  std::vector<std::byte> room_;
  std::pmr::monotonic_buffer_resource nodes_{room_.data(), room_.size()};
  Ranges gradients_{&nodes_}, updates_{&nodes_};
};

}  // namespace cinch::rt
