// What each kind of exchange is made of: messages or a collective of MPI, and what is done with
// what has come.
#include <algorithm>
#include <cstring>

#include "runtime/collective/join_ranks.h"
#include "runtime/collective/mpi/mpi_rank.h"

namespace cinch::rt {
namespace {

using MpiBytes = std::span<const std::uint8_t>;
using MpiRoom = std::span<std::uint8_t>;

// MPI's type for elements that it joins as we do: NaNs and zeros of either sign have an order of
// ours, floats of 16 bits are joined in f32, a mean is divided.
std::optional<std::int32_t> mpi_type(DType dtype, RankReduction reduction) {
  if (reduction == RankReduction::Sum && dtype == kF32) return CINCH_MPI_F32;
  if (reduction == RankReduction::Sum && dtype == kF64) return CINCH_MPI_F64;
  if (!is_int(dtype) || reduction == RankReduction::Mean) return std::nullopt;
  const bool is_signed = is_signed_int(dtype);
  switch (dtype.bits) {
    case 8:
      return is_signed ? CINCH_MPI_I8 : CINCH_MPI_U8;
    case 16:
      return is_signed ? CINCH_MPI_I16 : CINCH_MPI_U16;
    case 32:
      return is_signed ? CINCH_MPI_I32 : CINCH_MPI_U32;
    case 64:
      return is_signed ? CINCH_MPI_I64 : CINCH_MPI_U64;
    default:
      return std::nullopt;
  }
}

std::int32_t mpi_operation(RankReduction reduction) {
  if (reduction == RankReduction::Min) return CINCH_MPI_MIN;
  return reduction == RankReduction::Max ? CINCH_MPI_MAX : CINCH_MPI_SUM;
}

template <typename Span>
Span part_of(Span all, const ByteRange& range) {
  return all.subspan(range.offset, range.size);
}

void copy_bytes(MpiRoom to, MpiBytes from) {
  if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
}

}  // namespace

// Messages are counted by way, collectives on their own: ranks start both in the same order. Equal
// tags of different rounds do no harm, since messages of one tag do not overtake each other; every
// MPI has this many.
void MpiTransport::number(MpiPending& pending) {
  constexpr std::uint64_t kRounds = 8192;
  const Exchange& exchange = pending.exchange;
  const bool is_message =
      exchange.kind == ExchangeKind::Send || exchange.kind == ExchangeKind::Receive;
  std::uint64_t& count = !is_message                           ? num_collectives_
                         : exchange.kind == ExchangeKind::Send ? num_sent_[exchange.peer]
                                                               : num_received_[exchange.peer];
  pending.number = count++;
  pending.tag = static_cast<std::int32_t>(4 * (pending.number % kRounds) + (is_message ? 0 : 1));
}

template <typename Call>
Status MpiTransport::each_chunk(MpiPending& pending, const MpiLeg& like, MpiRoom bytes,
                                const Call& call) {
  do {  // an empty message is one, too
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

Status MpiTransport::begin_message(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (exchange.kind == ExchangeKind::Send) {
    const MpiRoom sent = pending.room(exchange.input.size());
    copy_bytes(sent, exchange.input);
    return send(pending, exchange.peer, sent);
  }
  return receive(pending, exchange.peer, pending.room(exchange.output.size()));
}

Status MpiTransport::begin_broadcast(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (world_ == 1) return Ok{};
  const bool is_root = exchange.peer == rank_;
  const MpiRoom room = pending.room(exchange.output.size());
  if (is_root) copy_bytes(room, exchange.output);
  if (is_root) num_sent_bytes_ += (world_ - 1) * exchange.output.size();
  return each_chunk(pending, {MpiLeg::Kind::Collective}, room,
                    [&](void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.broadcast(mpi_, at, size,
                                              static_cast<std::int32_t>(exchange.peer), token);
                    });
}

Status MpiTransport::begin_all_reduce(MpiPending& pending, std::int32_t type) {
  const Exchange& exchange = pending.exchange;
  const std::int32_t width = element_bytes(exchange.dtype);
  const std::int32_t operation = mpi_operation(exchange.reduction);
  const std::uint64_t size = exchange.input.size();
  const MpiRoom output = pending.room(2 * size).first(size),
                input = pending.room(2 * size).last(size);
  copy_bytes(input, exchange.input);
  num_sent_bytes_ += 2 * (size / world_) * (world_ - 1);
  return each_chunk(pending, {MpiLeg::Kind::Collective}, output,
                    [&](std::uint8_t* at, std::int32_t bytes, std::uint64_t token) {
                      return calls_.all_reduce(mpi_, at + size, at, bytes / width, type, operation,
                                               token);
                    });
}

// The own part, which goes to all, lies before what comes.
Status MpiTransport::begin_gather(MpiPending& pending, MpiBytes own,
                                  std::span<const ByteRange> received) {
  pending.received.resize(world_);
  std::uint64_t end = own.size();
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    pending.received[rank] = {end, rank == rank_ ? 0 : received[rank].size};
    end += pending.received[rank].size;
  }
  const MpiRoom all = pending.room(end), sent = all.first(own.size());
  copy_bytes(sent, own);
  Status status = Ok{};
  visit_others([&](std::uint32_t other) {
    if (status) status = receive(pending, other, part_of(all, pending.received[other]));
  });
  visit_others([&](std::uint32_t other) {
    if (status) status = send(pending, other, sent);
  });
  return status;
}

// Parts of the input to each rank, which lie before what comes.
Status MpiTransport::begin_parts(MpiPending& pending, std::span<const ByteRange> sent,
                                 std::span<const ByteRange> received) {
  const MpiBytes input = pending.exchange.input;
  pending.received.resize(world_);
  std::uint64_t end = 0;
  visit_others([&](std::uint32_t other) { end += sent[other].size; });
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    pending.received[rank] = {end, rank == rank_ ? 0 : received[rank].size};
    end += pending.received[rank].size;
  }
  const MpiRoom all = pending.room(end);
  Status status = Ok{};
  visit_others([&](std::uint32_t other) {
    if (status) status = receive(pending, other, part_of(all, pending.received[other]));
  });
  std::uint64_t begin = 0;
  visit_others([&](std::uint32_t other) {
    const MpiRoom room = part_of(all, ByteRange{begin, sent[other].size});
    begin += room.size();
    copy_bytes(room, part_of(input, sent[other]));
    if (status) status = send(pending, other, room);
  });
  return status;
}

// Every rank gets its part from all and joins them.
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
                                 : part_of(MpiBytes(pending.bytes), pending.received[rank]));
  }
  return join_arrays(exchange.dtype, exchange.reduction, pending.inputs, to);
}

void MpiTransport::cut_into_slices(MpiPending& pending) const {
  const auto width = static_cast<std::uint64_t>(element_bytes(pending.exchange.dtype));
  const std::uint64_t elements = pending.exchange.input.size() / width;
  pending.slices.resize(world_);
  for (std::uint64_t rank = 0; rank < world_; ++rank) {
    const std::uint64_t begin = elements * rank / world_, end = elements * (rank + 1) / world_;
    pending.slices[rank] = {begin * width, (end - begin) * width};
  }
}

std::optional<std::int32_t> MpiTransport::native_type(const Exchange& exchange) const {
  if (options_.is_exact && is_float(exchange.dtype)) return std::nullopt;
  return mpi_type(exchange.dtype, exchange.reduction);
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
      copy_bytes(part_of(exchange.output, exchange.received[rank_]), exchange.input);
      return begin_gather(pending, exchange.input, exchange.received);
    case ExchangeKind::AllToAll:
      copy_bytes(part_of(exchange.output, exchange.received[rank_]),
                 part_of(exchange.input, exchange.sent[rank_]));
      return begin_parts(pending, exchange.sent, exchange.received);
    case ExchangeKind::ReduceScatter:
      return begin_join(pending, exchange.sent);
    case ExchangeKind::AllReduce:
      break;
  }
  if (const auto type = native_type(exchange)) return begin_all_reduce(pending, *type);
  cut_into_slices(pending);
  pending.gathers_next = true;
  return begin_join(pending, pending.slices);
}

void MpiTransport::give_output(MpiPending& pending) const {
  const Exchange& exchange = pending.exchange;
  const MpiBytes bytes = pending.bytes;
  switch (exchange.kind) {
    case ExchangeKind::Send:
    case ExchangeKind::ReduceScatter:
      return;
    case ExchangeKind::Receive:
      return copy_bytes(exchange.output, bytes.first(exchange.output.size()));
    case ExchangeKind::Broadcast:
      if (exchange.peer == rank_) return;
      return copy_bytes(exchange.output, bytes.first(exchange.output.size()));
    case ExchangeKind::AllReduce:
      if (native_type(exchange)) {
        return copy_bytes(exchange.output, bytes.first(exchange.output.size()));
      }
      break;
    case ExchangeKind::AllGather:
    case ExchangeKind::AllToAll:
      break;
  }
  const std::span<const ByteRange> places = exchange.kind == ExchangeKind::AllReduce
                                                ? std::span<const ByteRange>(pending.slices)
                                                : exchange.received;
  visit_others([&](std::uint32_t other) {
    copy_bytes(part_of(exchange.output, places[other]), part_of(bytes, pending.received[other]));
  });
}

Result<bool> MpiTransport::advance(MpiPending& pending) {
  if (pending.num_left > 0) return false;
  const Exchange& exchange = pending.exchange;
  if (exchange.kind == ExchangeKind::ReduceScatter) {
    const Status status = join(pending, exchange.sent, exchange.output);
    if (!status) return tl::unexpected<Error>(status.error());
  }
  if (!pending.gathers_next) {
    give_output(pending);
    return true;
  }
  pending.gathers_next = false;
  const MpiRoom own = part_of(exchange.output, pending.slices[rank_]);
  Status status = join(pending, pending.slices, own);
  ++pending.tag;
  pending.legs.clear();
  if (status) status = begin_gather(pending, own, pending.slices);
  if (!status) return tl::unexpected<Error>(status.error());
  return pending.num_left == 0 ? advance(pending) : Result<bool>(false);
}

}  // namespace cinch::rt
