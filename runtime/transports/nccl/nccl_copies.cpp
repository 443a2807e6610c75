// Copies between host and device, and sums in rank order.
#include "runtime/collective/join_ranks.h"
#include "runtime/transports/nccl/nccl_exchanges.h"

namespace cinch::rt {

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
  Status status = is_root ? to_device(pending.output, exchange.output)
                          : to_device(pending.input, exchange.input);
  if (status) status = end_copies_in(pending);
  return status;
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
  Status status = Ok{};
  ByteRange next;
  for (const ByteRange& part : parts) {  // combines neighbouring parts
    if (part.offset == next.offset + next.size) {
      next.size += part.size;
      continue;
    }
    if (status)
      status =
          to_host(exchange.output.subspan(next.offset, next.size), pending.output + next.offset);
    next = part;
  }
  if (status)
    status = to_host(exchange.output.subspan(next.offset, next.size), pending.output + next.offset);
  if (status) status = wait();
  return status;
}

Status NcclCopies::join(NcclPending& pending) {
  const Exchange& exchange = pending.exchange;
  const std::uint64_t own_bytes = pending.joined_parts()[own_.rank].size;
  pending.bytes.resize(own_bytes * own_.world);
  pending.joined.resize(own_bytes);
  Status status = to_host(pending.bytes, pending.scratch);
  if (status) status = wait();
  if (!status) return status;
  pending.inputs.clear();
  for (std::uint64_t rank = 0; rank < own_.world; ++rank) {
    pending.inputs.emplace_back(std::span(pending.bytes).subspan(rank * own_bytes, own_bytes));
  }
  const bool is_last = exchange.kind == ExchangeKind::ReduceScatter;
  const std::span<std::uint8_t> to =
      is_last && pending.is_on_host() ? exchange.output : std::span(pending.joined);
  status = join_arrays(exchange.dtype, exchange.reduction, pending.inputs, to);
  if (!status || !is_last || pending.is_on_host()) return status;
  status = to_device(pending.output, pending.joined);
  if (status) status = wait();
  return status;
}

}  // namespace cinch::rt
