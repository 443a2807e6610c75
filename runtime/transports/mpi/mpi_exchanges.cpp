// Implements each kind of exchange by messages or a collective of MPI, and processes what has
// arrived.
#include <algorithm>
#include <cstring>

#include "runtime/collective/join_ranks.h"
#include "runtime/transports/mpi/mpi_rank.h"

namespace cinch::rt {
namespace {

using MpiBytes = std::span<const std::uint8_t>;
using MpiRoom = std::span<std::uint8_t>;

// MPI's type for elements that MPI joins as we do. It does not if NaNs and zeros of either sign are
// compared (our order differs), if floats have 16 bits (we join them in f32), or for a mean (we
// divide).
std::optional<std::int32_t> mpi_type(DType dtype, RankReduction reduction) {
  if (reduction == RankReduction::Sum && dtype == kF32) return CINCH_MPI_F32;
  if (reduction == RankReduction::Sum && dtype == kF64) return CINCH_MPI_F64;
  if (!is_int(dtype) || reduction == RankReduction::Mean) return std::nullopt;
  // The integers are in the order of their bits, each signed one first.
  for (std::int32_t type = CINCH_MPI_I8, bits = 8; bits <= 64; type += 2, bits *= 2) {
    if (dtype.bits == bits) return is_signed_int(dtype) ? type : type + 1;
  }
  return std::nullopt;
}

template <typename Span>
Span part_of(Span all, const ByteRange& range) {
  return all.subspan(range.offset, range.size);
}

void copy_bytes(MpiRoom to, MpiBytes from) {
  if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
}

Status copy(const MpiPending& pending, MpiDevice::Way way, MpiRoom to, MpiBytes from) {
  if (pending.device != nullptr) return pending.device->copy(way, to, from);
  copy_bytes(to, from);
  return Ok{};
}

}  // namespace

// Messages are numbered for each direction, collectives by themselves: ranks start both in the same
// order. Tags may repeat in later rounds, since messages with one tag do not overtake each other;
// every MPI has this many tags.
void MpiTransport::number(MpiPending& pending) {
  constexpr std::uint64_t kRounds = 8192;
  const Exchange& exchange = pending.exchange;
  const bool is_single = is_message(exchange.kind);
  std::uint64_t& count = !is_single                            ? num_collectives_
                         : exchange.kind == ExchangeKind::Send ? num_sent_[exchange.peer]
                                                               : num_received_[exchange.peer];
  pending.number = count++;
  pending.tag = static_cast<std::int32_t>(4 * (pending.number % kRounds) + (is_single ? 0 : 1));
}

template <typename Call>
Status MpiTransport::each_chunk(MpiPending& pending, const MpiLeg& like, MpiRoom bytes,
                                const Call& call) {
  do {  // an empty message is still a message
    const MpiRoom chunk = bytes.first(std::min<std::size_t>(bytes.size(), options_.most_bytes));
    bytes = bytes.subspan(chunk.size());
    const std::uint64_t token = token_of(pending.index, pending.legs.size());
    const std::int32_t code = call(chunk.data(), static_cast<std::int32_t>(chunk.size()), token);
    if (code != 0) return library_status(code);
    pending.legs.push_back({like.kind, like.peer, chunk.size(), false});
    ++pending.num_left;
  } while (!bytes.empty());
  return Ok{};
}

Status MpiTransport::send(MpiPending& pending, std::uint32_t to, MpiRoom bytes) {
  num_sent_bytes_ += bytes.size();
  return each_chunk(pending, {MpiLeg::Kind::Send, to}, bytes,
                    [&](const void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.send(mpi_, CINCH_MPI_DATA, at, size,
                                         static_cast<std::int32_t>(to), pending.tag, token);
                    });
}

Status MpiTransport::receive(MpiPending& pending, std::uint32_t from, MpiRoom bytes) {
  return each_chunk(pending, {MpiLeg::Kind::Receive, from}, bytes,
                    [&](void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.receive(mpi_, CINCH_MPI_DATA, at, size,
                                            static_cast<std::int32_t>(from), pending.tag, token);
                    });
}

Status MpiTransport::send_unsent(MpiPending& pending) {
  Status status = Ok{};
  for (const MpiUnsent& unsent : pending.unsent) {
    if (status) status = send(pending, unsent.to, unsent.bytes);
  }
  pending.unsent.clear();
  return status;
}

// Provides memory, which only grows.
Status MpiTransport::make_room(MpiPending& pending, std::uint64_t size) {
  if (pending.device == nullptr) {
    if (pending.bytes.size() < size) pending.bytes.resize(size);
    pending.room = std::span(pending.bytes).first(size);
    return Ok{};
  }
  pending.staging = TRY(pending.device->take(size));
  pending.room = pending.staging->bytes().first(size);
  return pending.device->begin_input(*pending.staging,
                                     static_cast<GpuStream>(pending.exchange.after));
}

Status MpiTransport::begin_message(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  const bool sends = exchange.kind == ExchangeKind::Send;
  CINCH_TRY(make_room(pending, sends ? exchange.input.size() : exchange.output.size()));
  if (!sends) return receive(pending, exchange.peer, pending.room);
  pending.unsent.push_back({exchange.peer, pending.room});
  return copy(pending, MpiDevice::Way::In, pending.room, exchange.input);
}

Status MpiTransport::begin_broadcast(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (world_ == 1) return Ok{};
  const bool is_root = exchange.peer == rank_;
  CINCH_TRY(make_room(pending, exchange.output.size()));
  if (is_root) copy_bytes(pending.room, exchange.output);
  if (is_root) num_sent_bytes_ += (world_ - 1) * exchange.output.size();
  return each_chunk(pending, {MpiLeg::Kind::Collective}, pending.room,
                    [&](void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.broadcast(mpi_, at, size,
                                              static_cast<std::int32_t>(exchange.peer), token);
                    });
}

Status MpiTransport::begin_all_reduce(MpiPending& pending, std::int32_t type) {
  const Exchange& exchange = pending.exchange;
  const std::int32_t width = element_bytes(exchange.dtype);
  const std::int32_t operation = exchange.reduction == RankReduction::Min   ? CINCH_MPI_MIN
                                 : exchange.reduction == RankReduction::Max ? CINCH_MPI_MAX
                                                                            : CINCH_MPI_SUM;
  const std::uint64_t size = exchange.input.size();
  CINCH_TRY(make_room(pending, 2 * size));
  const MpiRoom output = pending.room.first(size);
  copy_bytes(pending.room.last(size), exchange.input);
  num_sent_bytes_ += 2 * (size / world_) * (world_ - 1);
  return each_chunk(pending, {MpiLeg::Kind::Collective}, output,
                    [&](std::uint8_t* at, std::int32_t bytes, std::uint64_t token) {
                      return calls_.all_reduce(mpi_, at + size, at, bytes / width, type, operation,
                                               token);
                    });
}

// Makes room for bytes to send, followed by the parts of other ranks, which begin to arrive.
Status MpiTransport::receive_parts(MpiPending& pending, std::uint64_t sent_bytes,
                                   std::span<const ByteRange> received) {
  pending.received.resize(world_);
  std::uint64_t end = sent_bytes;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    pending.received[rank] = {end, rank == rank_ ? 0 : received[rank].size};
    end += pending.received[rank].size;
  }
  CINCH_TRY(make_room(pending, end));
  Status status = Ok{};
  visit_others(rank_, world_, [&](std::uint32_t other) {
    if (status) status = receive(pending, other, part_of(pending.room, pending.received[other]));
  });
  return status;
}

// The rank's own part, which goes to all, lies before the received ones.
Status MpiTransport::begin_gather(MpiPending& pending, MpiBytes own,
                                  std::span<const ByteRange> received) {
  CINCH_TRY(receive_parts(pending, own.size(), received));
  const MpiRoom sent = pending.room.first(own.size());
  visit_others(rank_, world_,
               [&](std::uint32_t other) { pending.unsent.push_back({other, sent}); });
  return copy(pending, MpiDevice::Way::In, sent, own);
}

// Sends parts of the input to each rank; they lie before the received ones.
Status MpiTransport::begin_parts(MpiPending& pending, std::span<const ByteRange> sent,
                                 std::span<const ByteRange> received) {
  const MpiBytes input = pending.exchange.input;
  std::uint64_t begin = 0, sent_bytes = 0;
  visit_others(rank_, world_, [&](std::uint32_t other) { sent_bytes += sent[other].size; });
  Status status = receive_parts(pending, sent_bytes, received);
  visit_others(rank_, world_, [&](std::uint32_t other) {
    if (!status) return;
    const MpiRoom room = part_of(pending.room, ByteRange{begin, sent[other].size});
    begin += room.size();
    pending.unsent.push_back({other, room});
    status = copy(pending, MpiDevice::Way::In, room, part_of(input, sent[other]));
  });
  return status;
}

// Every rank receives its part from all ranks and joins them.
Status MpiTransport::begin_join(MpiPending& pending, std::span<const ByteRange> parts) {
  pending.expected.assign(world_, parts[rank_]);
  return begin_parts(pending, parts, pending.expected);
}

Status MpiTransport::join(MpiPending& pending, std::span<const ByteRange> parts, MpiRoom to) const {
  const Exchange& exchange = pending.exchange;
  pending.inputs.clear();
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    pending.inputs.push_back(rank == rank_
                                 ? part_of(exchange.input, parts[rank])
                                 : part_of(MpiBytes(pending.room), pending.received[rank]));
  }
  return join_arrays(exchange.dtype, exchange.reduction, pending.inputs, to);
}

std::optional<std::int32_t> MpiTransport::native_type(const Exchange& exchange) const {
  if (options_.is_exact && is_float(exchange.dtype)) return std::nullopt;
  return mpi_type(exchange.dtype, exchange.reduction);
}

Status MpiTransport::keep_own(const MpiPending& pending, MpiBytes own) const {
  const Exchange& exchange = pending.exchange;
  return copy(pending, MpiDevice::Way::In, part_of(exchange.output, exchange.received[rank_]), own);
}

Status MpiTransport::begin(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  switch (exchange.kind) {
    case ExchangeKind::Send:
    case ExchangeKind::Receive:
      return begin_message(pending);
    case ExchangeKind::Broadcast:
      return begin_broadcast(pending);
    case ExchangeKind::AllGather:
      CINCH_TRY(begin_gather(pending, exchange.input, exchange.received));
      return keep_own(pending, exchange.input);
    case ExchangeKind::AllToAll:
      CINCH_TRY(begin_parts(pending, exchange.sent, exchange.received));
      return keep_own(pending, part_of(exchange.input, exchange.sent[rank_]));
    case ExchangeKind::ReduceScatter:
      return begin_join(pending, exchange.sent);
    case ExchangeKind::AllReduce:
      break;
  }
  if (const auto type = native_type(exchange)) return begin_all_reduce(pending, *type);
  cut_into_slices(exchange, world_, pending.slices);
  pending.gathers_next = true;
  return begin_join(pending, pending.slices);
}

Status MpiTransport::give_output(const MpiPending& pending) const {
  const Exchange& exchange = pending.exchange;
  const MpiBytes bytes = pending.room;
  const auto give_all = [&] {
    return copy(pending, MpiDevice::Way::Out, exchange.output, bytes.first(exchange.output.size()));
  };
  switch (exchange.kind) {
    case ExchangeKind::Send:
    case ExchangeKind::ReduceScatter:
      return Ok{};
    case ExchangeKind::Receive:
      return give_all();
    case ExchangeKind::Broadcast:
      return exchange.peer == rank_ ? Status(Ok{}) : give_all();
    case ExchangeKind::AllReduce:
      if (native_type(exchange)) return give_all();
      break;
    case ExchangeKind::AllGather:
    case ExchangeKind::AllToAll:
      break;
  }
  const std::span<const ByteRange> places = exchange.kind == ExchangeKind::AllReduce
                                                ? std::span<const ByteRange>(pending.slices)
                                                : exchange.received;
  Status status = Ok{};
  visit_others(rank_, world_, [&](std::uint32_t other) {
    if (!status) return;
    status = copy(pending, MpiDevice::Way::Out, part_of(exchange.output, places[other]),
                  part_of(bytes, pending.received[other]));
  });
  return status;
}

Status MpiTransport::begin_output(MpiPending& pending) {
  if (pending.device == nullptr || pending.exchange.kind == ExchangeKind::Send) {
    Status status = give_output(pending);
    end(pending);
    return status;
  }
  const MpiDevice& device = *pending.device;
  const MpiDevice::Turn turn(device);
  Status status =
      device.begin_output(*pending.staging, static_cast<GpuStream>(pending.exchange.after));
  if (status) status = give_output(pending);
  if (status) status = device.end(MpiDevice::Way::Out, *pending.staging);
  pending.stage = MpiPending::Stage::GivesOutput;
  return status;
}

Status MpiTransport::advance_copies(MpiPending& pending) {
  const MpiDevice::Turn turn(*pending.device);
  if (!TRY(pending.device->is_copied(*pending.staging))) return Ok{};
  ++num_moves_;
  num_idle_ = 0;
  if (pending.stage == MpiPending::Stage::GivesOutput) {
    end(pending);
    return Ok{};
  }
  pending.stage = MpiPending::Stage::Moves;
  return send_unsent(pending);
}

void MpiTransport::end(MpiPending& pending) {
  if (pending.staging != nullptr) pending.staging->is_used = false;
  pending.device = nullptr;
  pending.staging = nullptr;
  pending.stage = MpiPending::Stage::IsOver;
}

Status MpiTransport::advance(MpiPending& pending) {
  if (pending.stage != MpiPending::Stage::Moves) return advance_copies(pending);
  if (pending.num_left > 0) return Ok{};
  const Exchange& exchange = pending.exchange;
  if (!pending.gathers_next) {
    Status status = Ok{};
    if (exchange.kind == ExchangeKind::ReduceScatter) {
      status = join(pending, exchange.sent, exchange.output);
    }
    return status ? begin_output(pending) : status;
  }
  pending.gathers_next = false;
  const MpiRoom own = part_of(exchange.output, pending.slices[rank_]);
  Status status = join(pending, pending.slices, own);
  ++pending.tag;
  pending.legs.clear();
  if (status) status = begin_gather(pending, own, pending.slices);
  if (status) status = send_unsent(pending);
  return status && pending.num_left == 0 ? advance(pending) : status;
}

}  // namespace cinch::rt
