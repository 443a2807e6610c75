// Device memory that NCCL knows, and room that stands for host memory.
#include <algorithm>
#include <bit>

#include "runtime/transports/nccl/nccl_rank.h"

namespace cinch::rt {
namespace {

constexpr std::uint64_t kAlignment = 256;
constexpr std::uint64_t kLeastRoom = std::uint64_t{64} * 1024;

std::uint64_t padded(std::uint64_t size_bytes) {
  return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Status NcclTransport::make_known(NcclKnown& known, NcclLane& lane) const {
  const auto is_of_lane = [&lane](const auto& handle) { return handle.first == &lane; };
  if (calls_.register_memory == nullptr || calls_.deregister_memory == nullptr ||
      std::ranges::any_of(known.handles, is_of_lane)) {
    return Ok{};
  }
  void* handle = nullptr;
  auto* const memory = reinterpret_cast<void*>(  // NOLINT(performance-no-int-to-ptr)
      known.address);
  const NcclCode code = calls_.register_memory(lane.comm(), memory, known.size_bytes, &handle);
  known.handles.emplace_back(&lane, handle);
  return lane.status(code, "registering memory");
}

Status NcclTransport::make_lent_known(const NcclPending& pending) {
  for (NcclKnown& known : lent_) {
    const auto has = [&known](GpuAddress address) {
      return address >= known.address && address - known.address < known.size_bytes;
    };
    if (!has(pending.input) && !has(pending.output)) continue;
    CINCH_TRY(make_known(known, *pending.lane));
  }
  return Ok{};
}

void NcclTransport::deregister(NcclKnown& known) const {
  for (const auto& [lane, handle] : known.handles) {
    if (handle != nullptr && lane->comm() != nullptr) {
      calls_.deregister_memory(lane->comm(), handle);
    }
  }
  known.handles.clear();
}

void NcclTransport::deregister_all() {
  for (NcclKnown& known : lent_) deregister(known);
  for (NcclPending& pending : pending_) {
    for (NcclRoom::Block& block : pending.room.blocks) deregister(block.known);
  }
}

// NCCL cannot use a device that only one rank may use at a time.
bool NcclTransport::lend(const LentMemory& memory) {
  const auto address = reinterpret_cast<GpuAddress>(memory.bytes.data());
  if (memory.turns != nullptr || memory.bytes.empty()) return false;
  if (!device_->check_memory(address)) return false;
  lent_.push_back({address, memory.bytes.size(), {}});
  return true;
}

void NcclTransport::take_back(std::span<std::uint8_t> device_memory) {
  const auto address = reinterpret_cast<GpuAddress>(device_memory.data());
  const auto found = std::ranges::find(lent_, address, &NcclKnown::address);
  if (found == lent_.end()) return;
  const GpuDevice::Scope scope(*device_);
  // A lent communicator may still have work under way: it keeps its registrations.
  if (!all_.is_lent() || !is_under_way(&all_)) deregister(*found);
  lent_.erase(found);
}

Result<GpuAddress> NcclTransport::room_of(NcclPending& pending, std::uint64_t size_bytes) {
  if (size_bytes == 0) return GpuAddress{0};
  auto& blocks = pending.room.blocks;
  if (blocks.empty() || blocks.back().memory.size_bytes() < size_bytes) {
    auto memory = GpuMemory::allocate(device_, std::bit_ceil(std::max(size_bytes, kLeastRoom)));
    CINCH_TRY(memory);
    const NcclKnown known{memory->address(), memory->size_bytes(), {}};
    blocks.push_back({std::move(*memory), known});
  }
  CINCH_TRY(make_known(blocks.back().known, *pending.lane));
  return blocks.back().memory.address();
}

Status NcclTransport::make_room(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  const bool is_staged = pending.is_on_host();
  const std::uint64_t input = is_staged ? padded(exchange.input.size()) : 0;
  const std::uint64_t output = is_staged ? padded(exchange.output.size()) : 0;
  const auto room = room_of(pending, input + output + padded(launches_.scratch_bytes(pending)));
  CINCH_TRY(room);
  pending.scratch = *room + input + output;
  if (is_staged) {
    pending.input = *room;
    pending.output = *room + input;
    return Ok{};
  }
  pending.input = reinterpret_cast<GpuAddress>(exchange.input.data());
  pending.output = reinterpret_cast<GpuAddress>(exchange.output.data());
  return make_lent_known(pending);
}

}  // namespace cinch::rt
