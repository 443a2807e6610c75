// Bodies of protocol_parts.h.
#include "runtime/sync/protocol_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace cinch::rt {
namespace {

tl::unexpected<Error> another_program() {
  return fail(ErrorKind::InvalidArgument,
              "the program meets the other ranks in another way than the plan says");
}

// The task's exchange, if it ends at one: none is a message.
bool asks_for_collective(const Task& task) {
  return task.exchange != ExchangeKind::Send;
}

bool is_asked_for(const Task& task, const CollectiveCall& call) {
  const CollectiveInfo& collective = call.collective;
  return task.exchange == exchange_kind_of(collective.kind) &&
         task.reduction == collective.reduction && task.peer == collective.root &&
         task.dtype == call.dtype;
}

std::uint64_t room(std::span<const std::uint32_t> slots, PieceMemory& memory) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t slot : slots) bytes += memory.bytes_of(slot).size();
  return bytes;
}

}  // namespace

void ProtocolParts::begin_step() {
  points_.assign(plan_.pieces.size(), std::nullopt);
  failure_elsewhere_.reset();
}

Status ProtocolParts::run(const Task& task, PieceMemory& memory, ProtocolBody& body) {
  const std::uint32_t piece = piece_of(task);
  Point& point = points_[piece];
  auto next = task.part == 0 ? body.begin(piece)
              : point        ? go_on(task, *point, memory, body)
                             : Result<Point>(std::nullopt);
  point = next ? *next : std::nullopt;
  Status status = next ? Status(Ok{}) : Status(tl::unexpected<Error>(next.error()));
  if (status) status = give(task, point, memory, body);
  if (status) return status;
  return fail(status.error().kind, describe_piece(plan_, piece) + ": " + status.error().message,
              status.error().native_code);
}

Result<ProtocolParts::Point> ProtocolParts::go_on(const Task& task, const RankPoint& point,
                                                  PieceMemory& memory, ProtocolBody& body) {
  const auto all = status_of_all(task, point.own, memory);
  if (!all) return tl::unexpected<Error>(all.error());
  if (*all == RankStatus::Good && point.call) {
    const Status status = take_results(task, *point.call, memory, body);
    if (!status) return tl::unexpected<Error>(status.error());
  }
  const bool has_failed_elsewhere = *all == RankStatus::Failed && point.own != RankStatus::Failed;
  auto next = body.go_on(piece_of(task), *all);
  // Whoever failed gives up and says why.
  return has_failed_elsewhere ? Result<Point>(std::nullopt) : next;
}

Result<RankStatus> ProtocolParts::status_of_all(const Task& task, RankStatus own,
                                                PieceMemory& memory) {
  auto worst = RankStatus::Good;
  std::uint32_t failed = plan_.world();
  for (std::uint32_t rank = 0; rank < plan_.world(); ++rank) {
    const std::uint8_t word = memory.bytes_of(task.reads[rank])[0];
    if (word > static_cast<std::uint8_t>(RankStatus::NonFinite)) {
      return fail(ErrorKind::Internal, fmt::format("rank {} is in no state", rank));
    }
    const auto status = static_cast<RankStatus>(word);
    if (status == RankStatus::Failed) failed = std::min(failed, rank);
    worst = std::max(worst, status);
  }
  const bool is_elsewhere = worst == RankStatus::Failed && own != RankStatus::Failed;
  if (is_elsewhere && !failure_elsewhere_) {
    const std::string name = describe_piece(plan_, piece_of(task));
    failure_elsewhere_ =
        Error{ErrorKind::CheckFailed, fmt::format("{}: rank {} has failed", name, failed)};
  }
  return worst;
}

Status ProtocolParts::take_results(const Task& task, const CollectiveCall& call,
                                   PieceMemory& memory, ProtocolBody& body) const {
  const auto slots = std::span(task.reads).subspan(plan_.world());
  if (room(slots, memory) != call.output.size()) return another_program();
  std::uint64_t at = 0;
  for (const std::uint32_t slot : slots) {
    const auto wire = memory.bytes_of(slot);
    Status status = body.copy_in(call.output.subspan(at, wire.size()), slot, wire);
    if (!status) return status;
    at += wire.size();
  }
  return Ok{};
}

Status ProtocolParts::give(const Task& task, const Point& point, PieceMemory& memory,
                           ProtocolBody& body) const {
  if (task.is_last_part()) return point ? another_program() : Status(Ok{});
  const RankStatus own = point ? point->own : RankStatus::Good;
  memory.bytes_of(task.writes[0])[0] = static_cast<std::uint8_t>(own);
  if (!point || own != RankStatus::Good) return Ok{};
  if (!point->call) return asks_for_collective(task) ? another_program() : Status(Ok{});
  if (!is_asked_for(task, *point->call)) return another_program();
  const auto slots = std::span(task.writes).subspan(1);
  // Of a broadcast its root alone gives something.
  if (slots.empty() && task.exchange == ExchangeKind::Broadcast) return Ok{};
  const auto input = point->call->input;
  if (room(slots, memory) != input.size()) return another_program();
  std::uint64_t at = 0;
  for (const std::uint32_t slot : slots) {
    const auto wire = memory.bytes_of(slot);
    Status status = body.copy_out(slot, wire, input.subspan(at, wire.size()));
    if (!status) return status;
    at += wire.size();
  }
  return Ok{};
}

}  // namespace cinch::rt
