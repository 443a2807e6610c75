// Bodies of device_memory.h.
#include "runtime/sync/device/device_memory.h"

namespace cinch::rt {

DeviceMemory::DeviceMemory(const Plan& plan, std::uint32_t rank, ComputeDevice& device)
    : plan_(&plan),
      own_(&plan.ranks[rank]),
      device_(&device),
      sums_(plan.pieces.size()),
      apart_(plan.pieces.size()),
      values_{4, std::vector<std::uint8_t*>(plan.pieces.size()), {}},
      halves_{2, std::vector<std::uint8_t*>(plan.pieces.size()), {}} {}

Result<DeviceMemory> DeviceMemory::make(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
                                        const DeviceMemoryNeeds& needs) {
  DeviceMemory memory(plan, rank, device);
  const std::size_t wire_bytes = device.is_host() ? 0 : memory.own_->wire_bytes;
  std::vector<std::size_t> sizes = {wire_bytes, needs.gathered_bytes};
  const PieceList summed = summed_pieces(plan, rank);
  for (const PieceList* pieces : {&summed, &needs.apart}) {
    for (const std::uint32_t piece : *pieces) {
      sizes.push_back(static_cast<std::size_t>(plan.pieces[piece].num_elems) * 4);
    }
  }
  auto made = device.allocate(sizes);
  CINCH_TRY(made);
  memory.memory_ = std::move(*made);
  auto next = memory.memory_.pieces.begin();
  memory.wire_ = device.is_host() ? needs.wire : std::span(*next, wire_bytes);
  memory.gathering_ = *++next;
  for (const std::uint32_t piece : summed) memory.sums_[piece] = *++next;
  for (const std::uint32_t piece : needs.apart) memory.apart_[piece] = *++next;
  return memory;
}

Result<std::uint8_t*> DeviceMemory::copy_of(Copies& copies, std::uint32_t piece) {
  const auto& all = plan_->pieces;
  if (copies.pieces[piece] != nullptr || all[piece].num_elems == 0) return copies.pieces[piece];
  std::vector<std::size_t> sizes(all.size());
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (device_->is_host() && p != piece) continue;
    sizes[p] = static_cast<std::size_t>(all[p].num_elems * copies.element_bytes);
  }
  auto made = device_->allocate(sizes);
  CINCH_TRY(made);
  for (std::size_t p = 0; p < all.size(); ++p) {
    if (sizes[p] > 0) copies.pieces[p] = made->pieces[p];
  }
  copies.memory.push_back(std::move(*made));
  return copies.pieces[piece];
}

Result<std::uint8_t*> DeviceMemory::values(std::uint32_t piece) {
  return copy_of(values_, piece);
}

Result<std::uint8_t*> DeviceMemory::halves(std::uint32_t piece) {
  return copy_of(halves_, piece);
}

}  // namespace cinch::rt
