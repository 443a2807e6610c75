// The NCCL calls of each kind of exchange. All ranks choose the same calls, by sizes, on which they
// agree, and never by where parts lie.
#include "runtime/transports/nccl/nccl_rank.h"

#include <algorithm>

namespace cinch::rt {
namespace {

// NCCL's type for elements that NCCL joins as we do. It does not for minima and maxima of floats
// (our order of NaNs and signed zeros differs), and it has no integers of 16 bits.
std::optional<NcclType> nccl_type(const NcclCalls& calls, DType dtype, RankReduction reduction) {
  const bool has_newer = calls.version >= nccl_version(2, 10);
  const bool is_mean = reduction == RankReduction::Mean;
  const bool adds = reduction == RankReduction::Sum || (is_mean && has_newer);
  if (adds && dtype == kF16) return NcclType::Float16;
  if (adds && dtype == kF32) return NcclType::Float32;
  if (adds && dtype == kF64) return NcclType::Float64;
  if (adds && dtype == kBF16 && has_newer) return NcclType::Bfloat16;
  if (is_mean) return std::nullopt;
  if (dtype == kI8) return NcclType::Int8;
  if (dtype == kU8) return NcclType::Uint8;
  if (dtype == kI32) return NcclType::Int32;
  if (dtype == kU32) return NcclType::Uint32;
  if (dtype == kI64) return NcclType::Int64;
  if (dtype == kU64) return NcclType::Uint64;
  return std::nullopt;
}

NcclOperation nccl_operation(RankReduction reduction) {
  if (reduction == RankReduction::Min) return NcclOperation::Min;
  if (reduction == RankReduction::Mean) return NcclOperation::Average;
  return reduction == RankReduction::Max ? NcclOperation::Max : NcclOperation::Sum;
}

bool are_even(std::span<const ByteRange> parts) {
  return std::ranges::all_of(
      parts, [&](const ByteRange& part) { return part.size == parts.front().size; });
}

bool lie_in_order(std::span<const ByteRange> parts) {
  std::uint64_t end = parts.front().offset;
  return std::ranges::all_of(parts, [&end](const ByteRange& part) {
    const bool follows = part.offset == end;
    end += part.size;
    return follows;
  });
}

void* pointer_to(GpuAddress address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Calls between ncclGroupStart and ncclGroupEnd; keeps the first error.
class NcclGroup {
 public:
  NcclGroup(const NcclCalls& calls, const NcclLane& lane) : calls_(calls), lane_(lane) {
    add(calls_.group_start());
  }
  void add(NcclCode code) {
    if (first_ && code != kNcclSuccess) first_ = lane_.status(code, "exchanging");
  }
  // Messages of no bytes are left out, on both sides.
  void send(GpuAddress from, std::uint64_t size, std::uint32_t peer) {
    if (size == 0) return;
    add(calls_.send(pointer_to(from), size, NcclType::Uint8, static_cast<int>(peer), lane_.comm(),
                    lane_.stream()));
  }
  void receive(GpuAddress to, std::uint64_t size, std::uint32_t peer) {
    if (size == 0) return;
    add(calls_.receive(pointer_to(to), size, NcclType::Uint8, static_cast<int>(peer), lane_.comm(),
                       lane_.stream()));
  }
  Status end() {
    add(calls_.group_end());
    return first_;
  }

 private:
  const NcclCalls& calls_;
  const NcclLane& lane_;
  Status first_ = Ok{};
};

}  // namespace

std::optional<NcclType> NcclLaunches::native_type(const Exchange& exchange) const {
  if (is_exact_ && is_float(exchange.dtype)) return std::nullopt;
  return nccl_type(calls_, exchange.dtype, exchange.reduction);
}

std::uint64_t NcclLaunches::scratch_bytes(const NcclPending& pending) const {
  const Exchange& exchange = pending.exchange;
  const bool gathers = exchange.kind == ExchangeKind::AllGather;
  if (pending.is_joined_here) return pending.joined_parts()[own_.rank].size * own_.world;
  if (!gathers && exchange.kind != ExchangeKind::ReduceScatter) return 0;
  const std::span<const ByteRange> parts = gathers ? exchange.received : exchange.sent;
  return are_even(parts) && !lie_in_order(parts) ? parts.front().size * own_.world : 0;
}

Status NcclLaunches::launch_message(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  NcclGroup group(calls_, *pending.lane);
  // In a lane between two ranks the sender is rank 0. The other memory is empty.
  group.send(pending.input, exchange.input.size(), 1);
  group.receive(pending.output, exchange.output.size(), 0);
  return group.end();
}

// Sends parts to all others and receives theirs; the rank's own part stays on the device.
Status NcclLaunches::launch_parts(NcclPending& pending, std::span<const ByteRange> sent,
                                  GpuAddress to, std::span<const ByteRange> received) {
  NcclGroup group(calls_, *pending.lane);
  visit_others(own_.rank, own_.world, [&](std::uint32_t other) {
    group.send(pending.input + sent[other].offset, sent[other].size, other);
    group.receive(to + received[other].offset, received[other].size, other);
  });
  return group.end();
}

Status NcclLaunches::launch_all_gather(NcclPending& pending, GpuAddress own,
                                       std::span<const ByteRange> received) {
  const std::uint64_t own_bytes = received[own_.rank].size;
  NcclGroup group(calls_, *pending.lane);
  if (are_even(received)) {
    const bool is_direct = lie_in_order(received);
    pending.places_scattered = !is_direct;
    const GpuAddress to = is_direct ? pending.output + received[0].offset : pending.scratch;
    if (own_bytes > 0) {
      group.add(calls_.all_gather(pointer_to(own), pointer_to(to), own_bytes, NcclType::Uint8,
                                  pending.lane->comm(), pending.lane->stream()));
    }
    return group.end();
  }
  visit_others(own_.rank, own_.world, [&](std::uint32_t other) {
    group.send(own, own_bytes, other);
    group.receive(pending.output + received[other].offset, received[other].size, other);
  });
  CINCH_TRY(group.end());
  return copies_.on_device(pending, pending.output + received[own_.rank].offset, own, own_bytes);
}

Status NcclLaunches::launch_all_reduce(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (pending.is_joined_here) return launch_joined_parts(pending);
  const auto width = static_cast<std::size_t>(element_bytes(exchange.dtype));
  NcclGroup group(calls_, *pending.lane);
  group.add(calls_.all_reduce(pointer_to(pending.input), pointer_to(pending.output),
                              exchange.input.size() / width, pending.type,
                              nccl_operation(exchange.reduction), pending.lane->comm(),
                              pending.lane->stream()));
  return group.end();
}

// Every rank receives its part from all ranks; `join` does the rest.
Status NcclLaunches::launch_joined_parts(NcclPending& pending) {
  const std::span<const ByteRange> parts = pending.joined_parts();
  const std::uint64_t own_bytes = parts[own_.rank].size;
  pending.places.resize(own_.world);
  for (std::uint64_t rank = 0; rank < own_.world; ++rank) {
    pending.places[rank] = {rank * own_bytes, own_bytes};
  }
  CINCH_TRY(copies_.on_device(pending, pending.scratch + own_.rank * own_bytes,
                              pending.input + parts[own_.rank].offset, own_bytes));
  return launch_parts(pending, parts, pending.scratch, pending.places);
}

// NCCL scatters equal parts; other parts are reduced to their ranks one by one, in one group.
Status NcclLaunches::launch_reduce_scatter(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (pending.is_joined_here) return launch_joined_parts(pending);
  const auto width = static_cast<std::size_t>(element_bytes(exchange.dtype));
  const NcclType type = pending.type;
  const NcclOperation operation = nccl_operation(exchange.reduction);
  const NcclComm comm = pending.lane->comm();
  const GpuStream stream = pending.lane->stream();
  const std::span<const ByteRange> parts = exchange.sent;
  GpuAddress from = pending.input + parts[0].offset;
  if (are_even(parts) && !lie_in_order(parts)) {
    from = pending.scratch;
    for (std::uint32_t rank = 0; rank < own_.world; ++rank) {
      CINCH_TRY(copies_.on_device(pending, from + rank * parts[rank].size,
                                  pending.input + parts[rank].offset, parts[rank].size));
    }
  }
  NcclGroup group(calls_, *pending.lane);
  if (are_even(parts)) {
    if (parts[0].size > 0) {
      group.add(calls_.reduce_scatter(pointer_to(from), pointer_to(pending.output),
                                      parts[0].size / width, type, operation, comm, stream));
    }
    return group.end();
  }
  for (std::uint32_t root = 0; root < own_.world; ++root) {
    if (parts[root].size == 0) continue;
    group.add(calls_.reduce(pointer_to(pending.input + parts[root].offset),
                            pointer_to(pending.output), parts[root].size / width, type, operation,
                            static_cast<int>(root), comm, stream));
  }
  return group.end();
}

Status NcclLaunches::launch(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  switch (exchange.kind) {
    case ExchangeKind::Send:
    case ExchangeKind::Receive:
      return launch_message(pending);
    case ExchangeKind::Broadcast: {
      void* const output = pointer_to(pending.output);
      NcclGroup group(calls_, *pending.lane);
      group.add(calls_.broadcast(output, output, exchange.output.size(), NcclType::Uint8,
                                 static_cast<int>(exchange.peer), pending.lane->comm(),
                                 pending.lane->stream()));
      return group.end();
    }
    case ExchangeKind::AllGather:
      return launch_all_gather(pending, pending.input, exchange.received);
    case ExchangeKind::AllToAll: {
      const ByteRange from = exchange.sent[own_.rank], to = exchange.received[own_.rank];
      CINCH_TRY(copies_.on_device(pending, pending.output + to.offset, pending.input + from.offset,
                                  from.size));
      return launch_parts(pending, exchange.sent, pending.output, exchange.received);
    }
    case ExchangeKind::ReduceScatter:
      return launch_reduce_scatter(pending);
    case ExchangeKind::AllReduce:
      break;
  }
  return launch_all_reduce(pending);
}

Status NcclLaunches::launch_joined(NcclPending& pending) {
  const GpuAddress own = pending.output + pending.slices[own_.rank].offset;
  CINCH_TRY(copies_.to_device(own, pending.joined));
  CINCH_TRY(copies_.end_copies_in(pending));
  return launch_all_gather(pending, own, pending.slices);
}

Status NcclLaunches::after_launch(NcclPending& pending) {
  if (std::exchange(pending.places_scattered, false)) {
    const std::span<const ByteRange> places = pending.exchange.received;
    for (std::uint32_t rank = 0; rank < own_.world; ++rank) {
      CINCH_TRY(copies_.on_device(pending, pending.output + places[rank].offset,
                                  pending.scratch + rank * places[rank].size, places[rank].size));
    }
  }
  return copies_.mark_end(pending);
}

}  // namespace cinch::rt
