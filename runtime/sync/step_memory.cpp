// Bodies of step_memory.h.
#include "runtime/sync/step_memory.h"

#include <fmt/format.h>

#include <iterator>

namespace cinch::rt {

namespace {

// Of a node of a map, about. What does not fit is allocated.
constexpr std::size_t kNodeBytes = 64;

}  // namespace

bool StepMemory::Ranges::overlap(const Range& range) const {
  if (range.begin == range.end) return false;
  const auto behind = ends_.lower_bound(range.end);
  return behind != ends_.begin() && std::prev(behind)->second > range.begin;
}

// Joins the range with those that it meets.
void StepMemory::Ranges::add(Range range) {
  if (range.begin == range.end) return;
  auto at = ends_.lower_bound(range.begin);
  if (at != ends_.begin() && std::prev(at)->second >= range.begin) {
    --at;
    range.begin = at->first;
  }
  while (at != ends_.end() && at->first <= range.end) {
    range.end = std::max(range.end, at->second);
    at = ends_.erase(at);
  }
  ends_.emplace_hint(at, range.begin, range.end);
}

StepMemory::StepMemory(const Plan& plan, std::uint32_t rank)
    : plan_(plan),
      rank_(rank),
      added_(plan.tensors.size()),
      room_(2 * kNodeBytes * plan.tensors.size()) {}

void StepMemory::clear() {
  num_added_ = 0;
  gradients_.clear();
  updates_.clear();
  nodes_.release();
}

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
  const bool is_free = !gradients_.overlap(now.update) && !updates_.overlap(now.update) &&
                       !updates_.overlap(now.gradient);
  for (std::size_t i = 0; i < num_added_ && !is_free; ++i) {
    const Added& other = added_[i];
    const bool is_other = now.update.overlaps(other.gradient) ||
                          now.update.overlaps(other.update) || now.gradient.overlaps(other.update);
    if (!is_other) continue;
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{}: its memory overlaps that of {}, and an update would be written "
                            "over it",
                            name(tensor), name(other.tensor)));
  }
  gradients_.add(now.gradient);
  updates_.add(now.update);
  added_[num_added_++] = now;
  return Ok{};
}

}  // namespace cinch::rt
