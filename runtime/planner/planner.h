// Builds plans: which rank encodes, sends, adds and decodes what, and in which order. All ranks
// that ask with the same arguments get the same plan.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/call/joins.h"
#include "runtime/call/summed_arrays.h"
#include "runtime/core/error.h"
#include "runtime/image/image.h"
#include "runtime/plan/check_plan.h"
#include "runtime/plan/plan.h"
#include "runtime/planner/simulation/stand_ins.h"

namespace cinch::rt {

/// Facts about a compressor that planners need.
struct CodecFacts {
  std::string name;
  /// May a tensor be cut into pieces (language.md, Pieces)? The program is for vectors, and every
  /// state has an element for each of the gradient's.
  bool can_cut = false;
  bool has_sync = false;
  /// Is every payload as long as its bound? Then it has no counts, and no sizes that depend on the
  /// step.
  bool has_fixed_size = true;
  /// The largest payload in bytes, over all steps, for this number of rows and columns.
  std::function<Result<std::uint64_t>(std::int64_t rows, std::int64_t cols)> bound;
  /// The arrays that a transport adds up for such a payload; none if its wire is not summable.
  std::function<Result<std::vector<SumArray>>(std::int64_t rows, std::int64_t cols)> sum_arrays;
  /// The collectives of a `sync`; none if they are only known as it runs.
  std::function<Result<std::vector<SyncRound>>(std::int64_t rows, std::int64_t cols)> sync_rounds;
  /// ProgramInfo::takes_partial_sums.
  bool takes_partial_sums = true;
  /// Can a sum over ranks exceed a field's type? (payload_sum.h)
  bool has_narrow_fields = false;
  /// ProgramInfo::carrier. For CarrierKind::Program `carrier_codec` is the codec that encodes sums;
  /// kDense: the request does not have it.
  /// ProgramInfo::is_linear.
  bool is_linear = false;
  SumCarrier carrier = {};
  std::uint32_t carrier_codec = kDense;
  std::array<std::uint64_t, 2> fingerprint{};  // ProgramImage::fingerprint
  SumRules sum_rules() const { return {takes_partial_sums, carrier.kind}; }
  /// Do ranks send shares of the mean where they would else send sums, which may be too large?
  bool sends_shares() const {
    return has_narrow_fields && is_linear && takes_partial_sums &&
           carrier.kind == CarrierKind::Itself;
  }
  /// Does the sum over ranks fit wherever their mean does, if payloads are added?
  bool do_sums_fit() const { return !has_narrow_fields || sends_shares(); }
};

/// How to send payloads whose length is known only after encoding.
enum class LengthPolicy : std::uint8_t {
  Auto,      // padded if messages have at most kPaddedBytes, else exchanged
  Padded,    // at their largest size: no wait, but more bytes
  Exchanged  // lengths first: one more exchange, but no byte too many
};
inline constexpr std::uint64_t kPaddedBytes = 16 << 10;
/// "auto", "padded", "exchanged"; and back, if it is one of them.
std::string_view length_policy_name(LengthPolicy policy);
std::optional<LengthPolicy> length_policy_named(std::string_view name);

// One way to synchronise a tensor between machines with several devices each, as in the decision
// tree of Espresso (Wang et al., EuroSys 2023, figure 8): whether, where and on what device it is
// compressed, and which collectives carry it.

enum class OptionAction : std::uint8_t {
  Compress,
  Decompress,  // and adds the result
  AllReduce,
  ReduceScatter,
  Reduce,
  AllGather,
  Broadcast,
  AllToAll,
  Gather
};

/// The participants: all devices, the devices of one machine, or the devices with the same number
/// on all machines.
enum class OptionScope : std::uint8_t { Flat, Intra, Inter };
enum class OptionDevice : std::uint8_t { Gpu, Cpu };

struct OptionStep {
  OptionAction action = OptionAction::AllReduce;
  OptionScope scope = OptionScope::Flat;    // of collectives
  OptionDevice device = OptionDevice::Gpu;  // that compresses and decompresses
  bool is_compressed = false;               // does a collective carry payloads?
  friend bool operator==(const OptionStep&, const OptionStep&) = default;
};

using ExchangeOption = std::vector<OptionStep>;

/// The option with f32 within machines, and payloads to and from owners between machines.
ExchangeOption usual_hierarchical_option();

/// How a set of tensors is exchanged.
struct PlanRoute {
  std::string plan;  // a name of plan_names()
  /// As the fields of PlanRequest.
  std::uint64_t piece_bytes = 4 << 20;
  LengthPolicy lengths = LengthPolicy::Auto;
  ExchangeOption option = usual_hierarchical_option();
  /// Where ranks with a GPU encode and decode (PlanTensor::on_cpus). Tensors in f32, and of
  /// programs with a `sync`, stay on the GPU.
  OptionDevice device = OptionDevice::Gpu;
};

struct PlanRequest {
  std::string plan;  // a name of plan_names()
  std::uint32_t world = 1;
  std::vector<PlanTensor> tensors;  // in the order in which they will be ready
  std::vector<CodecFacts> codecs;
  /// Bytes of gradient to encode and send at a time. Larger tensors are cut, smaller ones travel
  /// together.
  std::uint64_t piece_bytes = 4 << 20;
  LengthPolicy lengths = LengthPolicy::Auto;
  std::vector<std::uint32_t> servers = {0};  // of "ps"
  /// For "hierarchical": ranks are numbered machine by machine, with this many on each; `option` is
  /// the way of tensors with a codec.
  std::uint32_t ranks_per_machine = 1;
  ExchangeOption option = usual_hierarchical_option();
  /// Instead of `plan`, `piece_bytes`, `lengths` and `option`: several, and which of them each
  /// tensor takes. Tensors of different routes share no message. "reduce_scatter" is not among
  /// them.
  std::vector<PlanRoute> routes = {};
  std::vector<std::uint32_t> route_of = {};  // by tensor
  /// The rank that runs the plan: only its tasks and rank 0's are written. None: those of all
  /// ranks.
  std::optional<std::uint32_t> rank = {};
  /// For simulations: the ranks are written ones, and cut tensors have equal pieces, as large as
  /// the largest. Null: every rank is itself.
  std::shared_ptr<const StandIns> stand_ins = {};
  /// Ranks in all.
  std::uint32_t whole_world() const { return stand_ins ? stand_ins->world : world; }
};

/// A tensor that one rank owns whole.
struct WholeTensor {
  std::uint32_t owner = 0;
  std::uint32_t bundle = 0;  // tensors of one bundle have the same number
  std::int64_t rows = 0, cols = 1;
  friend auto operator<=>(const WholeTensor&, const WholeTensor&) = default;
};
/// Those of plans that give every rank a part, in the order of their tensors. Errors: those of
/// build_plan.
Result<std::vector<WholeTensor>> find_whole_tensors(PlanRequest request);

/// "allreduce", "allgather", "two_shot", "ring", "ps", "tree", "hierarchical". Tensors without a
/// codec travel in f32 under each of them.
///
///   allreduce  the transport adds; tensors with a codec whose wire is not summable are gathered
///   allgather  every rank decodes all payloads
///   two_shot   the owner of a piece decodes what all ranks send it, and encodes the result again
///   ring       decode, add, encode at every hop; then the result goes round
///   ps         two_shot whose owners are `servers`, in messages
///   tree       partial sums up a binomial tree to rank 0, the result down
///
/// Where ring, two_shot, ps, tree and hierarchical encode a sum again, its carrier does it
/// (CodecFacts::carrier).
///
///   hierarchical  PlanRequest::option, in messages; usually in f32 within machines and two_shot
///              between them
///
/// "reduce_scatter" is not in this list, since it gives each rank only the update of its part
/// (PlanTensor::part_ends; equal parts if there are none). It is the first half of two_shot. To a
/// program that can cut, a part is a tensor of its own; other programs do not take this plan.
std::span<const std::string_view> plan_names();

/// A codec without a carrier of sums takes no plan that encodes them again.
///
/// A codec that does not take partial sums must decode the payloads of all ranks. It cannot use
/// "ring", "tree", or "hierarchical" if ranks of a machine add gradients first.
///
/// A plan of several routes has the name of their plans if that is one, else "routes".
///
/// Errors: InvalidArgument (no such plan, no such server, no such route, no ranks, parts that do
/// not cover a tensor; a codec that does not take the plan: the message lists the plans it takes),
/// those of CodecFacts::bound.
Result<Plan> build_plan(const PlanRequest& request);

/// The same, but returns none if a codec does not take the plan.
Result<std::optional<Plan>> build_plan_if_taken(const PlanRequest& request);

/// The plan of a request that names none: "allreduce" if a transport can add up the payloads of all
/// codecs that tensors have, and their sums fit, else "two_shot" if all of them take it, else
/// "allgather".
std::string_view usual_plan(const PlanRequest& request);

/// Does the plan encode sums again, so that codecs need their carriers?
bool encodes_sums(std::string_view plan);

/// Collects the facts of a program. Payloads are bounded with the parameters' defaults, for `step`
/// and all later steps. `machine_ranks`: as of SessionOptions. The facts keep the program alive.
CodecFacts codec_facts(const std::shared_ptr<const ProgramImage>& program, std::uint32_t world,
                       std::uint64_t step = 0, std::uint32_t machine_ranks = 0);

// Orders a plan's tasks across bundles. Exchanges begin in that order, so it decides how far
// bundles overlap.

/// Reorders a rank's tasks so that bundles follow one another like the steps of a pipeline. A plan
/// written bundle by bundle would begin no exchange of a bundle before the last exchange of the
/// bundle before, and links would idle while ranks compute. The orders of all ranks still match.
void interleave_bundles(const Plan& plan, RankPlan& rank);

/// How many bundles begin before the first one goes on: kBundlesAhead in interleave_bundles,
/// kFewBundlesAhead if the next bundle is long in coming.
inline constexpr std::uint32_t kBundlesAhead = 8, kFewBundlesAhead = 2;

/// Returns the order of a rank's tasks, as their places, for steps whose tensors become ready one
/// after the other, in the order of `place_of_tensor`. A bundle comes when its last tensor is
/// ready; `ahead` bundles begin before the first one goes on. The orders of all ranks still match.
std::vector<std::uint32_t> order_of_tasks(const Plan& plan, std::uint32_t rank,
                                          const std::vector<std::uint32_t>& place_of_tensor,
                                          std::uint32_t ahead);

}  // namespace cinch::rt
