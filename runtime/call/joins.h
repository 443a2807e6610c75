// What joins payloads of ranks and states of pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr_id.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {
/// Does every field have a `by`, and is no field counted?
bool has_summable_wire(const ProgramInfo& info);

/// How ranks join a field that has a `by`.
RankReduction reduction_of(FieldSum how);

/// Is a field of f16 or f8? The sum over ranks may exceed such a type even if the mean does not. If
/// the transport adds, f16 then becomes infinite, and f8 is an error.
bool has_narrow_fields(const ProgramInfo& info);

/// The f8 that is nearest to a sum. Nothing if a finite sum exceeds the type.
std::optional<std::uint64_t> f8_of_sum(DType dtype, float sum);

/// Joins the payloads of all ranks, by rank, into one. Floats are added in f32 (f64) in rank order
/// and rounded once to the field's type; integers are added exactly. The result is marked if any
/// payload is. Errors: InvalidArgument (a wire that is not summable, no payload), Overflow (a sum
/// of integers or f8 that exceeds its field's type), those of read_payload.
Result<std::vector<std::uint8_t>> sum_payloads(
    const PayloadExpectation& expected, std::span<const std::span<const std::uint8_t>> payloads);

// Joins states of a piece of a tensor from those of other pieces (language.md, Pieces).

/// Does every state have one element for each element of the gradient? States of pieces are then
/// slices of the tensor's states.
bool has_elementwise_states(const ProgramInfo& info);

/// States of consecutive elements from `first` on, as a state file.
struct StateSlice {
  std::int64_t first = 0, num_elems = 0;
  std::span<const std::uint8_t> states;
};

/// Returns `own` with its states replaced by those of `parts`, as far as these reach. Only for
/// programs with elementwise states. Errors: those of parse_states; InvalidArgument (states of
/// another program, parts that leave elements out, states whose elements are not whole bytes).
Result<std::vector<std::uint8_t>> join_slices(const StateSlice& own,
                                              std::span<const StateSlice> parts);

// Which calls a program takes, and what calls do to states. A program with a `sync` body neither
// encodes nor decodes; other programs do not synchronise.

/// May a session make this call? A program that decodes can also add to the output, and has a
/// finish (the default is sum / world). A session that only decodes has no encode, no sync, and
/// nothing that uses states. Error: InvalidArgument.
Status check_call(const ProgramImage& image, EntryKind kind, bool only_decodes);

/// May a session's states be read and written? Error: InvalidArgument.
Status check_holds_states(bool only_decodes);

/// Must states be copied so that a step can be undone? Yes if they change in place, or in several
/// calls of a step.
bool needs_copies_of_states(const ProgramImage& image);

// Lists the collectives of a `sync` before it runs, if no value decides about them and their sizes
// follow from the tensor and the number of ranks.

/// One collective, the same on every rank.
struct SyncRound {
  CollectiveInfo collective;
  RankGroups groups = {};
  DType dtype = kF32;
  std::uint64_t sent_bytes = 0, received_bytes = 0;  // input and output of CollectiveCall
};

/// True if no collective is in a branch or in a `while` or is routed (is_routed), and if neither
/// the number of rounds of loops nor any size depends on parameters or the step.
bool has_fixed_rounds(const ProgramImage& image);

/// The collectives in order, loops unrolled. Only for programs with fixed rounds. Errors: those of
/// formulas.
Result<std::vector<SyncRound>> sync_rounds(const ProgramImage& image, const HostEnv& env);

}  // namespace cinch::rt
