// Builds plans: which rank encodes, sends, adds and decodes what, and in which order. A plan is the
// same value on every rank that asks with the same arguments.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/call/summed_arrays.h"
#include "runtime/call/sync_rounds.h"
#include "runtime/core/error.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/exchange_options.h"

namespace cinch::rt {

/// What a planner knows of a compressor.
struct CodecFacts {
  std::string name;
  /// Of a vector, and every state has an element for each of the gradient's: a tensor may be cut
  /// into pieces (language.md, Pieces).
  bool can_cut = false;
  bool has_sync = false;
  /// Every payload is as long as its bound: no counts, no sizes that follow the step.
  bool has_fixed_size = true;
  /// Most bytes, over all steps, of a payload of so many rows and columns.
  std::function<Result<std::uint64_t>(std::int64_t rows, std::int64_t cols)> bound;
  /// The arrays that a transport adds up for such a payload; none where its wire is not summable.
  std::function<Result<std::vector<SumArray>>(std::int64_t rows, std::int64_t cols)> sum_arrays;
  /// Of a `sync`: its collectives; none where they only show on the way.
  std::function<Result<std::vector<SyncRound>>(std::int64_t rows, std::int64_t cols)> sync_rounds;
  /// ProgramInfo::takes_partial_sums.
  bool takes_partial_sums = true;
  /// payload_sum.h: what ranks add up to may be beyond a field's type.
  bool has_narrow_fields = false;
};

/// How payloads travel whose length is known only after encoding.
enum class LengthPolicy : std::uint8_t {
  Auto,      // padded up to kPaddedBytes a message, else exchanged
  Padded,    // as long as they may be: no wait, more bytes
  Exchanged  // lengths first: one more exchange, no byte too many
};
inline constexpr std::uint64_t kPaddedBytes = 16 << 10;

struct PlanRequest {
  std::string plan;  // a name of plan_names()
  std::uint32_t world = 1;
  std::vector<PlanTensor> tensors;  // in the order in which they are to be ready
  std::vector<CodecFacts> codecs;
  /// Gradient bytes that are encoded and sent at a time: larger tensors are cut, smaller ones
  /// travel together.
  std::uint64_t piece_bytes = 4 << 20;
  LengthPolicy lengths = LengthPolicy::Auto;
  std::vector<std::uint32_t> servers = {0};  // of "ps"
  /// Of "hierarchical": ranks of one machine follow one another, as many on each; and the way of
  /// tensors with a codec.
  std::uint32_t ranks_per_machine = 1;
  ExchangeOption option = usual_hierarchical_option();
};

/// "allreduce", "allgather", "two_shot", "ring", "ps", "tree", "hierarchical". Tensors without a
/// codec travel in f32 under each of them.
///
///   allreduce  the transport adds; tensors with a codec whose wire is not summable are gathered
///   allgather  every rank decodes all payloads
///   two_shot   the owner of a piece decodes what all ranks send it, and encodes the result again
///   ring       decode, add, encode at every hop; then the result goes round
///   ps         two_shot whose owners are `servers`, in messages
///   tree       partial sums up a binomial tree to rank 0, the result down
///   hierarchical  PlanRequest::option, in messages; usually in f32 within machines and two_shot
///              between them
///
/// "reduce_scatter" is none of them, since it gives each rank the update of its part alone
/// (PlanTensor::part_ends; equal parts where there are none): the first half of two_shot. A part is
/// a tensor of its own to a program that cuts; others do not take it.
std::span<const std::string_view> plan_names();

/// A codec that does not take partial sums is added up from the payloads of all ranks, so that
/// "ring", "tree", and "hierarchical" where ranks of a machine add gradients first are not for it.
///
/// Errors: InvalidArgument (no such plan, no such server, no ranks, parts that do not cover a
/// tensor; a codec that does not take the plan: the message says which ones it takes), those of
/// CodecFacts::bound.
Result<Plan> build_plan(const PlanRequest& request);

/// The same; none where a codec does not take the plan.
Result<std::optional<Plan>> build_plan_if_taken(const PlanRequest& request);

}  // namespace cinch::rt
