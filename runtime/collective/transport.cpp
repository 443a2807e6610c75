// What all transports share.

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "runtime/collective/join_ranks.h"
#include "runtime/core/log.h"

namespace cinch::rt {
namespace {

Status check_ranges(const Exchange& exchange, const char* which, std::span<const ByteRange> ranges,
                    std::size_t bytes, std::uint32_t world) {
  if (ranges.size() != world) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{}: {} {} ranges for {} ranks", exchange_kind_name(exchange.kind),
                            ranges.size(), which, world));
  }
  const auto outside = std::ranges::find_if(ranges, [bytes](const ByteRange& range) {
    return range.offset > bytes || range.size > bytes - range.offset;
  });
  if (outside == ranges.end()) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              fmt::format("{}: {} range {}, {} bytes from {}, lies outside {} bytes",
                          exchange_kind_name(exchange.kind), which, outside - ranges.begin(),
                          outside->size, outside->offset, bytes));
}

Status mismatch(const Exchange& exchange, std::uint64_t given, std::uint64_t wanted) {
  return fail(
      ErrorKind::InvalidArgument,
      fmt::format("{}: {} bytes, not {}", exchange_kind_name(exchange.kind), given, wanted));
}

Status check_parts(const Exchange& exchange, std::uint32_t rank, std::uint32_t world) {
  const std::span<const std::uint8_t> input = exchange.input, output = exchange.output;
  const std::span<const ByteRange> sent = exchange.sent, received = exchange.received;
  switch (exchange.kind) {
    case ExchangeKind::Send:
    case ExchangeKind::Receive:
    case ExchangeKind::Broadcast:
      return Ok{};
    case ExchangeKind::AllReduce:
      return input.size() == output.size() ? Status(Ok{})
                                           : mismatch(exchange, output.size(), input.size());
    case ExchangeKind::ReduceScatter:
      CINCH_TRY(check_ranges(exchange, "sent", sent, input.size(), world));
      if (sent[rank].size == output.size()) return Ok{};
      return mismatch(exchange, output.size(), sent[rank].size);
    case ExchangeKind::AllGather:
      CINCH_TRY(check_ranges(exchange, "received", received, output.size(), world));
      if (received[rank].size == input.size()) return Ok{};
      return mismatch(exchange, input.size(), received[rank].size);
    case ExchangeKind::AllToAll:
      CINCH_TRY(check_ranges(exchange, "sent", sent, input.size(), world));
      CINCH_TRY(check_ranges(exchange, "received", received, output.size(), world));
      if (sent[rank].size == received[rank].size) return Ok{};
      return mismatch(exchange, received[rank].size, sent[rank].size);
  }
  return fail(ErrorKind::InvalidArgument, "an exchange of an unknown kind");
}

Status check_place(const Exchange& exchange, const Transport& transport) {
  if (transport.takes_device_memory(exchange.kind)) return Ok{};
  const char* missing = exchange.place != MemoryPlace::Host ? "take a device's memory"
                        : exchange.after != nullptr         ? "wait for a device's stream"
                                                            : nullptr;
  if (missing == nullptr) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              fmt::format("{}: the transport {} does not {}", exchange_kind_name(exchange.kind),
                          transport.name(), missing));
}

std::string named(std::span<const std::uint32_t> ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string waits_for(std::span<const std::uint32_t> ranks) {
  return ranks.empty() ? std::string() : ", waits for " + named(ranks);
}

}  // namespace

const char* exchange_kind_name(ExchangeKind kind) {
  static constexpr const char* kNames[] = {
      "send", "receive", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast"};
  return name_in(kNames, kind, "exchange");
}

Status take_largest(Transport& transport, std::span<double> values,
                    std::chrono::milliseconds timeout) {
  Exchange exchange{ExchangeKind::AllReduce};
  exchange.reduction = RankReduction::Max;
  exchange.dtype = kF64;
  exchange.output = {reinterpret_cast<std::uint8_t*>(values.data()), values.size_bytes()};
  exchange.input = exchange.output;
  return exchange_now(transport, exchange, timeout, "comparing times");
}

std::uint64_t bytes_to_send(const Exchange& exchange, std::uint32_t rank, std::uint32_t world) {
  switch (exchange.kind) {
    case ExchangeKind::Send:
      return exchange.input.size();
    case ExchangeKind::Receive:
      return 0;
    case ExchangeKind::Broadcast:
      return exchange.peer == rank ? exchange.output.size() * (world - 1) : 0;
    case ExchangeKind::AllGather:
      return exchange.input.size() * (world - 1);
    case ExchangeKind::AllReduce:
      return 2 * exchange.input.size() / world * (world - 1);
    case ExchangeKind::AllToAll:
    case ExchangeKind::ReduceScatter:
      break;
  }
  std::uint64_t bytes = 0;
  for (std::uint32_t to = 0; to < world; ++to) {
    if (to != rank) bytes += exchange.sent[to].size;
  }
  return bytes;
}

Status check_exchange(const Exchange& exchange, const Transport& transport) {
  const std::uint32_t rank = transport.rank(), world = transport.world();
  if ((is_message(exchange.kind) || exchange.kind == ExchangeKind::Broadcast) &&
      exchange.peer >= world) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{}: there is no rank {} of {}", exchange_kind_name(exchange.kind),
                            exchange.peer, world));
  }
  if (is_message(exchange.kind) && exchange.peer == rank) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{}: rank {} is this one", exchange_kind_name(exchange.kind), rank));
  }
  const bool joins =
      exchange.kind == ExchangeKind::AllReduce || exchange.kind == ExchangeKind::ReduceScatter;
  if (joins && !can_join(exchange.dtype, exchange.reduction)) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{}: {} is not joined", exchange_kind_name(exchange.kind),
                            dtype_name(exchange.dtype)));
  }
  CINCH_TRY(check_place(exchange, transport));
  return check_parts(exchange, rank, world);
}

Status check_world(std::uint32_t world) {
  if (world >= 1 && world <= kMostRanks) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              fmt::format("{} ranks: there are 1 to {}", world, kMostRanks));
}

bool Transport::lend(const LentMemory& /*memory*/) {
  return false;
}

void Transport::take_back(std::span<std::uint8_t> /*device_memory*/) {}

std::string gave_up(std::uint32_t rank, std::string_view why) {
  constexpr std::string_view kWords = " gave up: ";
  const std::size_t words = why.find(kWords);
  if (words != std::string::npos) {
    const std::size_t begin = why.find_last_not_of("0123456789", words - 1) + 1;
    constexpr std::string_view kRank = "rank ";
    const bool is_of_rank = begin >= kRank.size() && begin < words &&
                            why.compare(begin - kRank.size(), kRank.size(), kRank) == 0;
    if (is_of_rank) return std::string(why.substr(begin - kRank.size()));
  }
  return fmt::format("rank {}{}{}", rank, kWords, why);
}

Error abandon_late(Transport& transport, const Error& error,
                   std::span<const std::uint32_t> awaited) {
  constexpr std::chrono::milliseconds kListens{200}, kNap{5};
  transport.abandon(error);
  std::vector<std::uint32_t> silent(awaited.begin(), awaited.end());
  std::string words;
  const auto has_spoken = [&](std::uint32_t rank) {
    const auto said = transport.last_words(rank);
    if (said && words.empty()) words = "; " + said->message;
    return said.has_value();
  };
  const auto end = std::chrono::steady_clock::now() + kListens;
  for (;;) {
    std::erase_if(silent, has_spoken);
    if (silent.empty() || std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(kNap);
  }
  const std::string named = waits_for(awaited);
  if (silent.size() == awaited.size() || !error.message.ends_with(named)) return error;
  Error known = error;
  known.message.resize(known.message.size() - named.size());
  known.message += silent.empty() ? words : waits_for(silent);
  return known;
}

void WaitLog::begin() {
  using std::chrono::milliseconds;
  next_ = std::clamp(timeout_ / 10, milliseconds(1), milliseconds(30000));
}

std::optional<std::string> WaitLog::line(const Transport& transport, Ticket ticket,
                                         std::chrono::steady_clock::duration standstill,
                                         std::string_view what) {
  if (!is_due(standstill)) return std::nullopt;
  next_ *= 2;
  const auto seconds = [](auto span) { return std::chrono::duration<double>(span).count(); };
  const auto ranks = transport.awaited_ranks(ticket);
  return fmt::format("rank {} has waited {:.3g} s for {} ({}), and gives up in {:.3g} s",
                     transport.rank(), seconds(standstill),
                     ranks.empty() ? "the other ranks" : named(ranks), what,
                     seconds(timeout_ - standstill));
}

Error timed_out(const Transport& transport, Ticket ticket, std::chrono::milliseconds timeout) {
  return {ErrorKind::TimedOut, fmt::format("nothing has moved for {} ms{}", timeout.count(),
                                           waits_for(transport.awaited_ranks(ticket)))};
}

Status wait_for(Transport& transport, Ticket ticket, std::chrono::milliseconds timeout,
                const std::function<std::string()>& what) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kLook{1000};
  Clock::time_point last_move = Clock::now();
  std::uint64_t num_moves = transport.num_moves();
  WaitLog log(timeout);
  for (;;) {
    if (TRY(transport.test(ticket))) return Ok{};
    const std::uint64_t before = std::exchange(num_moves, transport.num_moves());
    if (num_moves != before) last_move = Clock::now();
    const Clock::duration standstill = Clock::now() - last_move;
    if (standstill >= timeout) {
      return tl::unexpected<Error>(timed_out(transport, ticket, timeout));
    }
    if (log.is_due(standstill)) {
      const auto line = log.line(transport, ticket, standstill, what ? what() : "an exchange");
      if (line) tell_log(*line);
    }
    transport.pause(kLook);
  }
}

Status exchange_now(Transport& transport, const Exchange& exchange,
                    std::chrono::milliseconds timeout, std::string_view phase) {
  const auto ticket = transport.start(exchange);
  Status status =
      ticket ? wait_for(transport, *ticket, timeout, [phase] { return std::string(phase); })
             : Status(tl::unexpected<Error>(ticket.error()));
  if (status) return status;
  Error& error = status.error();
  error.message = fmt::format("{}: {}", phase, error.message);
  if (ticket && error.kind == ErrorKind::TimedOut) {
    const std::vector<std::uint32_t> awaited = transport.awaited_ranks(*ticket);
    error = abandon_late(transport, error, awaited);
  } else {
    transport.abandon(error);
  }
  return status;
}

void cut_into_slices(const Exchange& exchange, std::uint32_t world,
                     std::vector<ByteRange>& slices) {
  const auto width = static_cast<std::uint64_t>(element_bytes(exchange.dtype));
  const std::uint64_t elements = exchange.input.size() / width;
  slices.resize(world);
  for (std::uint64_t rank = 0; rank < world; ++rank) {
    const std::uint64_t begin = elements * rank / world, end = elements * (rank + 1) / world;
    slices[rank] = {begin * width, (end - begin) * width};
  }
}

void pause_idle(std::uint32_t& num_idle, std::uint32_t num_yields, std::chrono::microseconds most) {
  constexpr std::chrono::microseconds kNap{50};
  if (++num_idle <= num_yields) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min(most, kNap));
}

ExchangeKind exchange_kind_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::AllGatherCounted:
      return ExchangeKind::AllGather;
    case CollectiveKind::AllToAll:
    case CollectiveKind::SendReceive:
    case CollectiveKind::SendReceiveCounted:
      return ExchangeKind::AllToAll;
    case CollectiveKind::ReduceScatter:
      return ExchangeKind::ReduceScatter;
    case CollectiveKind::Broadcast:
    case CollectiveKind::BroadcastFrom:
      return ExchangeKind::Broadcast;
    case CollectiveKind::AllReduce:
    case CollectiveKind::None:
      break;
  }
  return ExchangeKind::AllReduce;
}

}  // namespace cinch::rt
