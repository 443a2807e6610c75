// Facts about tasks that are needed before they run.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/call/parameters.h"
#include "runtime/core/error.h"
#include "runtime/plan/plan.h"
#include "runtime/session/session_list.h"

namespace cinch::rt {

using PieceList = std::vector<std::uint32_t>;

/// Lists the pieces of all groups of the task, in order, in the memory that `to` has.
void list_pieces(const Plan& plan, const Task& task, PieceList& to);
PieceList pieces_of(const Plan& plan, const Task& task);
std::uint32_t codec_of(const Plan& plan, const Task& task);
/// Does the codec carry the sums of another (Group::carries)? Then of this one.
std::optional<std::uint32_t> codec_carried_by(const Plan& plan, std::uint32_t codec);
/// Does the task work on plain f32?
bool is_dense(const Plan& plan, const Task& task);

/// Makes a seed for the site, so that different sites draw differently.
std::uint64_t site_seed(std::uint64_t seed, Site site);
/// The site whose sessions decode what `encoded_at` encoded. If decoding repeats no draws, these
/// are the sessions that encode the rank's own gradient, so that no states are held for decoding
/// alone.
Site decoding_site(const ProgramInfo& info, Site encoded_at);

/// Pieces that some task of the rank adds up, each once.
PieceList summed_pieces(const Plan& plan, std::uint32_t rank);

/// Sites at which this task needs sessions of a program.
std::vector<Site> sites_of(const Task& task, const ProgramInfo& info);

/// Does a payload of at most `bound` bytes, perhaps of the carrier of sums, fit into its room in
/// the plan? Errors: InvalidArgument.
Status check_room(const Plan& plan, std::uint32_t piece, bool is_of_carrier, std::int64_t bound,
                  std::uint64_t step);
/// Do all payloads of a codec fit with these parameters? Errors: OutOfRange.
Status check_room(const Plan& plan, std::uint32_t codec, const ProgramInfo& info,
                  const ParameterValues& parameters, std::uint64_t step);

/// Rounds up to a multiple of kArenaAlignment, where the next payload of a message begins.
std::size_t round_up_to_arena(std::size_t bytes);
/// Appends the payloads of an untrusted message to `to`. If packed, they follow one another;
/// otherwise each begins where the largest payloads before it would end. Errors: CorruptPayload.
Status split_message(const Plan& plan, const Group& group, std::span<const std::uint8_t> message,
                     bool is_packed, std::vector<PayloadBytes>& to);

}  // namespace cinch::rt
