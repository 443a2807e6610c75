// Bodies of routes.h.
#include "runtime/collective/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

namespace cinch::rt {
namespace {

using Offers = std::span<const RankOffer>;

constexpr std::uint32_t kNobody = UINT32_MAX;

// For each receiver, the rank that sends to it.
Result<std::vector<std::uint32_t>> senders(std::string_view place, Offers offers) {
  std::vector<std::uint32_t> from(offers.size(), kNobody);
  for (std::uint32_t rank = 0; rank < offers.size(); ++rank) {
    const std::uint64_t to = offers[rank].to;
    if (to >= offers.size()) {
      // A program's negative number has the bits of its two's complement.
      return fail(
          ErrorKind::CheckFailed,
          fmt::format("{}: rank {} sends to rank {} of {}", place, rank,
                      static_cast<std::int32_t>(static_cast<std::uint32_t>(to)), offers.size()));
    }
    if (from[to] != kNobody) {
      return fail(ErrorKind::CheckFailed, fmt::format("{}: ranks {} and {} both send to rank {}",
                                                      place, from[to], rank, to));
    }
    from[to] = rank;
  }
  return from;
}

tl::unexpected<Error> no_room() {
  return fail(ErrorKind::CorruptPayload, "an array that is longer than its receiver's");
}

Result<std::vector<ByteRange>> parts_from_sender(const CollectiveCall& call, Offers offers,
                                                 std::uint32_t rank) {
  const auto from = senders(call.place, offers);
  CINCH_TRY(from);
  for (std::uint32_t to = 0; to < offers.size(); ++to) {
    const std::uint64_t sent = offers[(*from)[to]].sent_bytes, room = offers[to].room_bytes;
    if (is_counted(call.collective.kind) ? sent > room : sent != room) return no_room();
  }
  const std::uint32_t sender = (*from)[rank];
  std::vector<ByteRange> parts(offers.size());
  parts[sender].size = offers[sender].sent_bytes;
  return parts;
}

// All ranks compare with the smallest room, so that they find the same error.
Result<std::vector<ByteRange>> parts_in_rank_order(Offers offers) {
  std::uint64_t room = UINT64_MAX, end = 0;
  for (const RankOffer& offer : offers) room = std::min(room, offer.room_bytes);
  std::vector<ByteRange> parts;
  for (const RankOffer& offer : offers) {
    if (offer.sent_bytes > room - end) return no_room();
    parts.push_back({end, offer.sent_bytes});
    end += offer.sent_bytes;
  }
  return parts;
}

}  // namespace

RankOffer offer_of(const CollectiveCall& call) {
  return {call.to, call.input.size(), call.output.size()};
}

Result<std::vector<ByteRange>> received_parts(const CollectiveCall& call, Offers offers,
                                              std::uint32_t rank) {
  return names_receiver(call.collective.kind) ? parts_from_sender(call, offers, rank)
                                              : parts_in_rank_order(offers);
}

void end_routed(const CollectiveCall& call, std::span<const ByteRange> parts) {
  const std::uint64_t bytes =
      std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const ByteRange& part) { return sum + part.size; });
  std::ranges::fill(call.output.subspan(bytes), std::uint8_t{0});
  if (!is_counted(call.collective.kind)) return;
  const auto count = static_cast<std::uint32_t>(bytes / call.element_bytes);
  std::memcpy(call.received.data(), &count, sizeof count);
}

Status give_routed(const CollectiveCall& call,
                   std::span<const std::span<const std::uint8_t>> inputs, Offers offers,
                   std::uint32_t rank) {
  const auto parts = received_parts(call, offers, rank);
  CINCH_TRY(parts);
  for (std::size_t from = 0; from < inputs.size(); ++from) {
    const ByteRange& part = (*parts)[from];
    if (part.size > 0) {
      std::memcpy(call.output.data() + part.offset, inputs[from].data(), part.size);
    }
  }
  end_routed(call, *parts);
  return Ok{};
}

Status take_scalars(std::span<const BufferIndex> scalars, std::uint32_t storage_bits,
                    const ReadScalar& read, CollectiveCall& call) {
  const CollectiveKind kind = call.collective.kind;
  if (names_receiver(kind)) {
    const auto to = read(scalars.front());
    CINCH_TRY(to);
    call.to = *to;
  }
  if (!is_counted(kind)) return Ok{};
  call.element_bytes = storage_bits / 8;
  const auto sent = read(scalars[scalars.size() - 2]);
  CINCH_TRY(sent);
  const std::uint64_t bytes = std::uint64_t{*sent} * call.element_bytes;
  if (bytes > call.input.size()) {
    return fail(ErrorKind::Internal, "a collective of more elements than its array has");
  }
  call.input = call.input.first(bytes);
  return Ok{};
}

}  // namespace cinch::rt
