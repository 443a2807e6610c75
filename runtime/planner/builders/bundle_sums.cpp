// How sums travel that are encoded again: by the groups' own codec, by its carrier, or in f32.
#include <algorithm>

#include "runtime/planner/builders/builders.h"

namespace cinch::rt {

std::uint32_t BundleContext::sum_group(std::uint32_t group) const {
  if (bundle.carriers.empty()) return group;
  const auto at = std::ranges::find(bundle.groups, group) - bundle.groups.begin();
  return bundle.carriers[static_cast<std::size_t>(at)];
}

std::vector<std::uint32_t> BundleContext::sum_groups(
    const std::vector<std::uint32_t>& groups) const {
  std::vector<std::uint32_t> sums;
  sums.reserve(groups.size());
  for (const std::uint32_t group : groups) sums.push_back(sum_group(group));
  return sums;
}

std::uint32_t BundleContext::add_sum_slot(std::uint32_t group) const {
  if (has_exact_sums) return to.add_slot(dense_bytes(plan, group));
  const std::uint64_t bytes = message_bytes(plan, sum_group(group));
  return are_sums_sized ? to.add_sized_slot(bytes) : to.add_slot(bytes);
}

void BundleContext::encode_sums(Site site, const std::vector<std::uint32_t>& groups,
                                const std::vector<std::uint32_t>& slots) const {
  if (!has_exact_sums) return to.encode(site, Value::Sum, sum_groups(groups), slots);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    to.encode_dense(Value::Sum, groups[i], slots[i], site);
  }
}

void BundleContext::decode_sums(Site site, const std::vector<std::uint32_t>& groups,
                                const std::vector<std::uint32_t>& slots, Value to_value) const {
  if (!has_exact_sums) return to.decode(site, sum_groups(groups), slots, to_value);
  for (std::size_t i = 0; i < groups.size(); ++i) to.decode_dense(groups[i], slots[i], to_value);
}

void BundleContext::decode_add_sum(Site site, std::uint32_t group, std::uint32_t slot) const {
  if (has_exact_sums) return to.decode_add_dense(group, slot);
  to.decode_add(site, sum_group(group), slot);
}

void BundleContext::encode_own(std::uint32_t group, std::uint32_t slot) const {
  if (narrowing == 1) return to.encode(Site::Worker, Value::Gradient, {group}, {slot});
  to.clear(group);
  to.add_gradient(group);
  to.scale(group, narrowing);
  to.encode(Site::Worker, Value::Sum, {group}, {slot});
}

void BundleContext::begin_sum(std::uint32_t group) const {
  if (carries_itself()) {
    to.clear(group);
    to.add_gradient(group);
    if (narrowing != 1) to.scale(group, narrowing);
    return;
  }
  const std::uint32_t slot = add_slot(group);
  encode_own(group, slot);
  to.clear(group);
  to.decode_add(Site::Worker, group, slot);
}

void BundleContext::finish_sum(std::uint32_t group, Value to_value) const {
  if (narrowing != 1) to.scale(group, 1 / narrowing);
  to.finish(group, to_value);
}

}  // namespace cinch::rt
