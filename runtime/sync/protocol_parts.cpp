#include "runtime/sync/protocol_parts.h"

namespace cinch::rt {
namespace {

tl::unexpected<Error> another_program() {
  return invalid("the program meets the other ranks in another way than the plan says");
}

bool is_asked_for(const Task& task, const CollectiveCall& call) {
  const CollectiveInfo& collective = call.collective;
  return task.exchange == exchange_kind_of(collective.kind) &&
         task.reduction == collective.reduction && task.peer == collective.root &&
         task.dtype == call.dtype;
}

// Do just the slots of the call's group hold anything? Each rank has a slot of its own.
bool are_of_group(std::span<const std::uint32_t> slots, const CollectiveCall& call,
                  std::uint32_t own, PieceMemory& memory) {
  if (call.collective.kind != CollectiveKind::AllToAll || call.input.empty()) return true;
  for (std::uint32_t rank = 0; rank < slots.size(); ++rank) {
    const bool is_member = call.groups.are_together(own, rank);
    if (memory.bytes_of(slots[rank]).empty() == is_member) return false;
  }
  return true;
}

std::uint64_t room(std::span<const std::uint32_t> slots, PieceMemory& memory) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t slot : slots) bytes += memory.bytes_of(slot).size();
  return bytes;
}

}  // namespace

void ProtocolParts::begin_step() {
  calls_.assign(plan_.pieces.size(), {});
}

Status ProtocolParts::run(const Task& task, PieceMemory& memory, ProtocolBody& body) {
  const std::uint32_t piece = piece_of(task);
  Call& call = calls_[piece];
  Status status = Ok{};
  if (call.outcome.status == RankStatus::Good) status = go_on(task, call, memory, body);
  if (status) {
    status = task.is_last_part() ? end(task, call, body) : give(task, call, memory, body);
  }
  if (status) return status;
  return fail(status.error().kind, describe_piece(plan_, piece) + ": " + status.error().message,
              status.error().native_code);
}

Status ProtocolParts::go_on(const Task& task, Call& call, PieceMemory& memory, ProtocolBody& body) {
  if (task.part > 0) {
    if (!call.point || !call.point->call) return another_program();
    CINCH_TRY(take_results(task, *call.point->call, memory, body));
  }
  const std::uint32_t piece = piece_of(task);
  call.point = TRY(task.part == 0 ? body.begin(piece) : body.go_on(piece, RankStatus::Good));
  if (call.point) call.outcome = {call.point->own, task.part};
  return Ok{};
}

// Ends the call as it went here; the outcomes of other ranks come later.
Status ProtocolParts::end(const Task& task, Call& call, ProtocolBody& body) const {
  if (!call.point) return Ok{};  // no elements
  const RankStatus own = call.outcome.status;
  if (own == RankStatus::Good && call.point->call) return another_program();
  auto next = body.go_on(piece_of(task), own);
  call.point.reset();
  if (next) return *next ? another_program() : Status(Ok{});
  if (own != RankStatus::Failed) return tl::unexpected<Error>(next.error());
  call.failure = std::move(next.error());
  return Ok{};
}

Status ProtocolParts::take_results(const Task& task, const CollectiveCall& call,
                                   PieceMemory& memory, ProtocolBody& body) const {
  const std::span slots(task.reads);
  if (room(slots, memory) != call.output.size()) return another_program();
  std::uint64_t at = 0;
  for (const std::uint32_t slot : slots) {
    const auto wire = memory.bytes_of(slot);
    if (wire.empty()) continue;
    CINCH_TRY(body.copy_in(call.output.subspan(at, wire.size()), slot, wire));
    at += wire.size();
  }
  return Ok{};
}

Status ProtocolParts::give(const Task& task, const Call& call, PieceMemory& memory,
                           ProtocolBody& body) const {
  if (call.outcome.status != RankStatus::Good) {
    for (const std::uint32_t slot : task.writes) {
      CINCH_TRY(body.clear(slot, memory.bytes_of(slot)));
    }
    return Ok{};
  }
  const auto& point = call.point;
  if (!point || !point->call || !is_asked_for(task, *point->call)) return another_program();
  // In a broadcast only the root has an input.
  if (task.writes.empty() && task.exchange == ExchangeKind::Broadcast) return Ok{};
  const auto input = point->call->input;
  if (room(task.writes, memory) != input.size()) return another_program();
  if (!are_of_group(task.writes, *point->call, rank_, memory)) return another_program();
  std::uint64_t at = 0;
  for (const std::uint32_t slot : task.writes) {
    const auto wire = memory.bytes_of(slot);
    if (wire.empty()) continue;
    CINCH_TRY(body.copy_out(slot, wire, input.subspan(at, wire.size())));
    at += wire.size();
  }
  return Ok{};
}

JointOutcome join_outcomes(std::span<const PartOutcome> by_rank) {
  JointOutcome joint;
  std::uint32_t first_part = UINT32_MAX;
  for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    const PartOutcome& one = by_rank[rank];
    if (one.status == RankStatus::Good) continue;
    const bool is_earlier = one.part < first_part;
    const bool is_graver = one.part == first_part && joint.status == RankStatus::Failed &&
                           one.status == RankStatus::NonFinite;
    if (!is_earlier && !is_graver) continue;
    joint = {one.status, rank};
    first_part = one.part;
  }
  return joint;
}

}  // namespace cinch::rt
