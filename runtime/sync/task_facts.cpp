// Bodies of task_facts.h.
#include "runtime/sync/task_facts.h"

#include <fmt/format.h>

#include <cstring>

#include "runtime/call/bucket.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kSizeAt = 56;  // in a payload's header

}  // namespace

void list_pieces(const Plan& plan, const Task& task, PieceList& to) {
  to.clear();
  for (const std::uint32_t group : task.groups) {
    const PieceList& of = plan.groups[group].pieces;
    to.insert(to.end(), of.begin(), of.end());
  }
}

PieceList pieces_of(const Plan& plan, const Task& task) {
  PieceList pieces;
  list_pieces(plan, task, pieces);
  return pieces;
}

std::uint32_t codec_of(const Plan& plan, const Task& task) {
  return plan.groups[task.groups[0]].codec;
}

std::optional<std::uint32_t> codec_carried_by(const Plan& plan, std::uint32_t codec) {
  for (const Group& group : plan.groups) {
    if (group.codec == codec && group.carries != kNoGroup) return plan.groups[group.carries].codec;
  }
  return std::nullopt;
}

bool is_dense(const Plan& plan, const Task& task) {
  return task.is_dense || codec_of(plan, task) == kDense;
}

// Arbitrary odd numbers, far apart.
std::uint64_t site_seed(std::uint64_t seed, Site site) {
  return seed ^ (0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(site));
}

Site decoding_site(const ProgramInfo& info, Site encoded_at) {
  return info.decode_draws ? encoded_at : Site::Worker;
}

PieceList summed_pieces(const Plan& plan, std::uint32_t rank) {
  std::vector<bool> is_summed(plan.pieces.size());
  PieceList pieces;
  for (const Task& task : plan.ranks[rank].tasks) {
    const bool sums_up =
        task.kind == TaskKind::Clear || (task.kind == TaskKind::Decode && task.to == Value::Sum);
    if (!sums_up) continue;
    for (const std::uint32_t piece : pieces_of(plan, task)) {
      if (!is_summed[piece]) pieces.push_back(piece);
      is_summed[piece] = true;
    }
  }
  return pieces;
}

std::vector<Site> sites_of(const Task& task, const ProgramInfo& info) {
  switch (task.kind) {
    case TaskKind::Encode:
      return {task.site};
    case TaskKind::Decode:
    case TaskKind::DecodeAdd:
      return {decoding_site(info, task.site)};
    case TaskKind::Finish:
    case TaskKind::Part:
    case TaskKind::Synchronise:
    case TaskKind::Spread:
    case TaskKind::Join:
      return {Site::Worker};
    default:
      return {};
  }
}

Status check_room(const Plan& plan, std::uint32_t piece, bool is_of_carrier, std::int64_t bound,
                  std::uint64_t step) {
  const Piece& of = plan.pieces[piece];
  const std::uint64_t room = is_of_carrier ? of.carried_bytes : of.bound_bytes;
  if (static_cast<std::uint64_t>(bound) <= room) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              fmt::format("{}: a payload of step {} may have {} bytes, the plan has room for {}: "
                          "it was made for other parameters or a later step",
                          describe_piece(plan, piece), step, bound, room));
}

namespace {

Status check_room(const Plan& plan, const Group& group, const ProgramInfo& info,
                  const ParameterValues& parameters, std::uint64_t step) {
  for (const std::uint32_t piece : group.pieces) {
    const Piece& of = plan.pieces[piece];
    const PlanTensor& tensor = plan.tensors[of.tensor];
    const TensorFacts facts{info.is_matrix ? tensor.rows : of.num_elems,
                            info.is_matrix ? tensor.cols : 1, plan.world()};
    const auto layout =
        payload_bound_layout(info, host_env(facts_for(info, facts), parameters, step));
    CINCH_TRY(layout);
    const auto bytes = static_cast<std::uint64_t>(layout->size_bytes);
    const std::uint64_t room = payload_room(group, of);
    if (bytes <= room) continue;
    return fail(
        ErrorKind::OutOfRange,
        fmt::format("{}: a payload may then have {} bytes, the plan has room for {}: it was "
                    "made for the values that the session was opened with",
                    describe_piece(plan, piece), bytes, room));
  }
  return Ok{};
}

}  // namespace

Status check_room(const Plan& plan, std::uint32_t codec, const ProgramInfo& info,
                  const ParameterValues& parameters, std::uint64_t step) {
  if (info.has_sync) return Ok{};
  for (const Group& group : plan.groups) {
    if (group.codec != codec) continue;
    CINCH_TRY(check_room(plan, group, info, parameters, step));
  }
  return Ok{};
}

std::size_t round_up_to_arena(std::size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

Status split_message(const Plan& plan, const Group& group, std::span<const std::uint8_t> message,
                     bool is_packed, std::vector<PayloadBytes>& to) {
  std::size_t begin = 0;
  for (const std::uint32_t piece : group.pieces) {
    begin = round_up_to_arena(begin);
    const auto header = static_cast<std::size_t>(kPayloadHeaderBytes);
    std::uint64_t size = 0;
    const bool has_header = begin <= message.size() && message.size() - begin >= header;
    if (has_header) std::memcpy(&size, message.data() + begin + kSizeAt, sizeof size);
    if (!has_header || size < header || size > message.size() - begin) {
      return fail(ErrorKind::CorruptPayload,
                  fmt::format("{}: a payload of {} bytes at {} of a message of {}",
                              describe_piece(plan, piece), size, begin, message.size()));
    }
    to.push_back(message.subspan(begin, size));
    begin += is_packed ? size : payload_room(group, plan.pieces[piece]);
  }
  return Ok{};
}

}  // namespace cinch::rt
