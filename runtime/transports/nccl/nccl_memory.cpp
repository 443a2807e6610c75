// Device memory that NCCL knows, and room that stands for host memory.
#include <algorithm>
#include <bit>

#include "runtime/collective/join_ranks.h"
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
    auto memory =
        TRY(GpuMemory::allocate(device_, std::bit_ceil(std::max(size_bytes, kLeastRoom))));
    const NcclKnown known{memory.address(), memory.size_bytes(), {}};
    blocks.push_back({std::move(memory), known});
  }
  CINCH_TRY(make_known(blocks.back().known, *pending.lane));
  return blocks.back().memory.address();
}

Status NcclTransport::make_room(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  const bool is_staged = pending.is_on_host();
  const std::uint64_t input = is_staged ? padded(exchange.input.size()) : 0;
  const std::uint64_t output = is_staged ? padded(exchange.output.size()) : 0;
  const auto room =
      TRY(room_of(pending, input + output + padded(launches_.scratch_bytes(pending))));
  pending.scratch = room + input + output;
  if (is_staged) {
    pending.input = room;
    pending.output = room + input;
    return Ok{};
  }
  pending.input = reinterpret_cast<GpuAddress>(exchange.input.data());
  pending.output = reinterpret_cast<GpuAddress>(exchange.output.data());
  return make_lent_known(pending);
}

// Copies between host and device, and sums in rank order.

Status NcclCopies::open() {
  return device_->status(driver().stream_create(&stream_, kGpuStreamNonBlocking),
                         "making a stream for copies");
}

void NcclCopies::close() {
  if (stream_ != nullptr) driver().stream_destroy(stream_);
}

Status NcclCopies::mark_end(NcclPending& pending) {
  return device_->status(driver().event_record(pending.has_run, pending.lane->stream()),
                         "marking the end of an exchange");
}

Status NcclCopies::to_device(GpuAddress to, std::span<const std::uint8_t> from) {
  if (from.empty()) return Ok{};
  return device_->status(driver().copy_to_device(to, from.data(), from.size(), stream_),
                         "copying to the device");
}

Status NcclCopies::to_host(std::span<std::uint8_t> to, GpuAddress from) {
  if (to.empty()) return Ok{};
  return device_->status(driver().copy_to_host(to.data(), from, to.size(), stream_),
                         "copying from the device");
}

Status NcclCopies::on_device(const NcclPending& pending, GpuAddress to, GpuAddress from,
                             std::uint64_t size_bytes) {
  if (size_bytes == 0 || to == from) return Ok{};
  return device_->status(driver().copy_on_device(to, from, size_bytes, pending.lane->stream()),
                         "copying");
}

Status NcclCopies::end_copies_in(NcclPending& pending) {
  GpuCode code = driver().event_record(pending.is_copied, stream_);
  if (code == kGpuSuccess) {
    code = driver().stream_wait_event(pending.lane->stream(), pending.is_copied, 0);
  }
  return device_->status(code, "copying to the device");
}

Status NcclCopies::wait() {
  if (stream_ == nullptr) return Ok{};
  return device_->status(driver().stream_synchronize(stream_), "copying from the device");
}

Status NcclCopies::copy_in(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (!pending.is_on_host()) return Ok{};
  const bool is_root = exchange.kind == ExchangeKind::Broadcast && exchange.peer == own_.rank;
  CINCH_TRY(is_root ? to_device(pending.output, exchange.output)
                    : to_device(pending.input, exchange.input));
  return end_copies_in(pending);
}

Status NcclCopies::copy_out(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  const bool is_root = exchange.kind == ExchangeKind::Broadcast && exchange.peer == own_.rank;
  const bool is_scattered = pending.is_joined_here && exchange.kind == ExchangeKind::ReduceScatter;
  if (!pending.is_on_host() || is_root || is_scattered) return Ok{};
  const bool has_parts =
      exchange.kind == ExchangeKind::AllGather || exchange.kind == ExchangeKind::AllToAll;
  const ByteRange all{0, exchange.output.size()};
  const std::span<const ByteRange> parts =
      has_parts ? exchange.received : std::span<const ByteRange>(&all, 1);
  const auto give = [&](const ByteRange& range) {
    return to_host(exchange.output.subspan(range.offset, range.size),
                   pending.output + range.offset);
  };
  ByteRange next;
  for (const ByteRange& part : parts) {  // combines neighbouring parts
    if (part.offset == next.offset + next.size) {
      next.size += part.size;
      continue;
    }
    CINCH_TRY(give(next));
    next = part;
  }
  CINCH_TRY(give(next));
  return wait();
}

Status NcclCopies::join(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  const std::uint64_t own_bytes = pending.joined_parts()[own_.rank].size;
  pending.bytes.resize(own_bytes * own_.world);
  pending.joined.resize(own_bytes);
  CINCH_TRY(to_host(pending.bytes, pending.scratch));
  CINCH_TRY(wait());
  pending.inputs.clear();
  for (std::uint64_t rank = 0; rank < own_.world; ++rank) {
    pending.inputs.emplace_back(std::span(pending.bytes).subspan(rank * own_bytes, own_bytes));
  }
  const bool is_last = exchange.kind == ExchangeKind::ReduceScatter;
  const std::span<std::uint8_t> to =
      is_last && pending.is_on_host() ? exchange.output : std::span(pending.joined);
  CINCH_TRY(join_arrays(exchange.dtype, exchange.reduction, pending.inputs, to));
  if (!is_last || pending.is_on_host()) return Ok{};
  CINCH_TRY(to_device(pending.output, pending.joined));
  return wait();
}

}  // namespace cinch::rt
