// What must be known of tasks before they run.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/call/parameters.h"
#include "runtime/core/error.h"
#include "runtime/plan/plan.h"
#include "runtime/session/session_list.h"

namespace cinch::rt {

using PieceList = std::vector<std::uint32_t>;

/// Of all its groups, in order; in the memory that `to` has.
void list_pieces(const Plan& plan, const Task& task, PieceList& to);
PieceList pieces_of(const Plan& plan, const Task& task);
std::uint32_t codec_of(const Plan& plan, const Task& task);
/// Does the task work on plain f32?
bool is_dense(const Plan& plan, const Task& task);

/// Draws of one site are not those of another one.
std::uint64_t site_seed(std::uint64_t seed, Site site);
/// Whose sessions decode what was encoded at a site: where nothing of it is drawn again, those that
/// encode the rank's own gradient, so that no states are held for decoding alone.
Site decoding_site(const ProgramInfo& info, Site encoded_at);

/// Pieces that some task of the rank sums up, each once.
PieceList summed_pieces(const Plan& plan, std::uint32_t rank);

/// Sites where this task needs sessions of a program.
std::vector<Site> sites_of(const Task& task, const ProgramInfo& info);

/// Does a payload of at most `bound` bytes fit into what the plan has for it? Errors:
/// InvalidArgument.
Status check_room(const Plan& plan, std::uint32_t piece, std::int64_t bound, std::uint64_t step);
/// Do all payloads of a codec fit with these parameters? Errors: OutOfRange.
Status check_room(const Plan& plan, std::uint32_t codec, const ProgramInfo& info,
                  const ParameterValues& parameters, std::uint64_t step);

/// A multiple of kArenaAlignment: where the next payload of a message begins.
std::size_t round_up_to_arena(std::size_t bytes);
/// Adds the payloads of a message, which may be hostile, to `to`. Packed: one behind the other;
/// else each where those before it end at the latest. Errors: CorruptPayload.
Status split_message(const Plan& plan, const PieceList& pieces,
                     std::span<const std::uint8_t> message, bool is_packed,
                     std::vector<PayloadBytes>& to);

}  // namespace cinch::rt
