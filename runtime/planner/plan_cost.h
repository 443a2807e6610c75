// How long a step by a plan should take: its tasks on the two lanes of every rank, in the order in
// which PlanRunner would run them, with the times that network and programs were measured at.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/planner/network/network_model.h"

namespace cinch::rt {

/// Seconds of a call by the number of its elements: straight lines between measured sizes, which go
/// on before the first and behind the last. Of one size: as long for each element.
struct CostCurve {
  std::vector<Sample> samples;  // by size
  double at(double elems) const;
};

/// Of one program, or of plain f32, on as many threads as a rank has.
struct CodecSpeed {
  CostCurve encode, decode, decode_add, finish;
  CostCurve spread, join;        // where a transport adds the payloads
  double used_share = 1;         // of a payload's bound, where that is more than its length
  std::vector<CostCurve> parts;  // of a `sync`
};

struct CostInputs {
  NetworkModel network;
  std::vector<CodecSpeed> codecs;  // by the plan's codecs
  CodecSpeed dense;
  CostCurve clear;
  /// By kMeasuredKinds: what an exchange takes of the thread that issues it, alone on a core; by
  /// the bytes that the rank sends. Exchanges of one rank take it one after the other.
  std::array<Line, kMeasuredKinds.size()> exchange_work{};
  /// Ranks of one machine follow one another and share its cores; each computes on `threads`.
  std::uint32_t ranks_per_machine = 1;
  double cores = 1, threads = 1;
};

/// Of the rank for which it is most, each. The parts overlap.
struct PlanCost {
  double seconds = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;   // and everything else that computes
  double network_seconds = 0;  // while some exchange is under way
};

/// The plan has passed check_plan. A collective ends when all have joined and their bytes have come
/// through; messages and parts of collectives share the links of both sides. Errors:
/// InvalidArgument (a `sync` that is one task, whose exchanges no plan says; another number of
/// ranks than the network's).
Result<PlanCost> estimate_cost(const Plan& plan, const CostInputs& inputs);

}  // namespace cinch::rt
