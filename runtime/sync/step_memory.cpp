// Bodies of step_memory.h.
#include "runtime/sync/step_memory.h"

#include <fmt/format.h>

namespace cinch::rt {

StepMemory::StepMemory(const Plan& plan, std::uint32_t rank)
    : plan_(plan), rank_(rank), added_(plan.tensors.size()) {}

StepMemory::Range StepMemory::range_of(const ConstTensorView& view) {
  const auto begin = reinterpret_cast<std::uintptr_t>(view.data);
  return {begin, begin + byte_count(view)};
}

bool StepMemory::is_in_place(std::uint32_t tensor, const ConstTensorView& gradient,
                             const TensorView& update) const {
  const auto first = static_cast<std::size_t>(updated_part(plan_.tensors[tensor], rank_).first);
  return update.dtype == gradient.dtype &&
         range_of(update).begin == range_of(gradient).begin + first * gradient.dtype.bits / 8;
}

Status StepMemory::add(std::uint32_t tensor, const ConstTensorView& gradient,
                       const TensorView& update) {
  const Added now{tensor, range_of(gradient), range_of(update)};
  const auto name = [&](std::uint32_t of) { return plan_.tensors[of].name; };
  if (now.update.overlaps(now.gradient) && !is_in_place(tensor, gradient, update)) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{}: the update overlaps its gradient; it may only be the same memory",
                            name(tensor)));
  }
  // Compares each with all: some hundreds of tensors, with two comparisons each.
  for (std::size_t i = 0; i < num_added_; ++i) {
    const Added& other = added_[i];
    const bool is_free = !now.update.overlaps(other.gradient) &&
                         !now.update.overlaps(other.update) && !now.gradient.overlaps(other.update);
    if (is_free) continue;
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{}: its memory overlaps that of {}, and an update would be written "
                            "over it",
                            name(tensor), name(other.tensor)));
  }
  added_[num_added_++] = now;
  return Ok{};
}

}  // namespace cinch::rt
