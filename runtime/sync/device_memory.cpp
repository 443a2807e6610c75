// Bodies of device_memory.h.
#include "runtime/sync/device_memory.h"

namespace cinch::rt {
namespace {

constexpr std::int64_t kF32Bytes = 4, kHalfBytes = 2;

}  // namespace

DeviceMemory::DeviceMemory(const Plan& plan, std::uint32_t rank,
                           std::shared_ptr<const GpuDevice> device, GpuStream stream)
    : plan_(&plan),
      own_(&plan.ranks[rank]),
      device_(std::move(device)),
      stream_(stream),
      sums_(plan.pieces.size(), GpuArena::kNone),
      apart_(plan.pieces.size(), GpuArena::kNone) {}

Result<DeviceMemory> DeviceMemory::make(const Plan& plan, std::uint32_t rank,
                                        const PieceList& apart, std::uint64_t gathered_bytes,
                                        std::shared_ptr<const GpuDevice> device, GpuStream stream) {
  DeviceMemory memory(plan, rank, std::move(device), stream);
  const auto f32_bytes = [&](std::uint32_t piece) {
    return static_cast<std::size_t>(plan.pieces[piece].num_elems * kF32Bytes);
  };
  memory.wire_ = memory.arena_.add(memory.own_->wire_bytes);
  memory.gathering_ = memory.arena_.add(gathered_bytes);
  for (const std::uint32_t piece : summed_pieces(plan, rank)) {
    memory.sums_[piece] = memory.arena_.add(f32_bytes(piece));
  }
  for (const std::uint32_t piece : apart) {
    memory.apart_[piece] = memory.arena_.add(f32_bytes(piece));
  }
  const GpuDevice::Scope scope(*memory.device_);
  if (Status status = memory.arena_.allocate(memory.device_, stream); !status) {
    return tl::unexpected<Error>(status.error());
  }
  return memory;
}

Result<GpuAddress> DeviceMemory::copy_of(Copies& copies, std::int64_t element_bytes,
                                         std::uint32_t piece) {
  if (!copies.is_made) {
    for (const Piece& each : plan_->pieces) {
      copies.arena.add(static_cast<std::size_t>(each.num_elems * element_bytes));
    }
    const GpuDevice::Scope scope(*device_);
    if (Status status = copies.arena.allocate(device_, stream_); !status) {
      return tl::unexpected<Error>(status.error());
    }
    copies.is_made = true;
  }
  return copies.arena.address(piece);
}

Result<GpuAddress> DeviceMemory::values(std::uint32_t piece) {
  return copy_of(values_, kF32Bytes, piece);
}

Result<GpuAddress> DeviceMemory::halves(std::uint32_t piece) {
  return copy_of(halves_, kHalfBytes, piece);
}

}  // namespace cinch::rt
