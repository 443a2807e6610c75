// Predicts how long a step by a plan takes. It runs the tasks on the two lanes of every rank in the
// order in which PlanRunner would, with measured times of network and programs.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/planner/network/network_model.h"

namespace cinch::rt {

/// Seconds of a call by its number of elements: straight lines between measured sizes, continued
/// before the first and after the last. With one measured size, time is proportional to the number
/// of elements.
struct CostCurve {
  std::vector<Sample> samples;  // by size
  double at(double elems) const;
};

/// Speed of one program, or of plain f32, on as many threads as a rank has.
struct CodecSpeed {
  CostCurve encode, decode, decode_add, finish;
  CostCurve spread, join;  // for a transport that adds payloads
  // The share of a payload's bound that is used, if payloads are shorter than their bounds
  double used_share = 1;
  std::vector<CostCurve> parts;  // of a `sync`
};

struct CostInputs {
  NetworkModel network;
  std::vector<CodecSpeed> codecs;  // by the plan's codecs
  CodecSpeed dense;
  CostCurve clear;
  /// By kMeasuredKinds: time that an exchange takes on the thread that issues it, alone on a core,
  /// by the bytes that the rank sends. A rank's exchanges take this time one after the other.
  std::array<Line, kMeasuredKinds.size()> exchange_work{};
  /// Ranks are numbered machine by machine, and share their machine's cores; each computes on
  /// `threads`.
  std::uint32_t ranks_per_machine = 1;
  double cores = 1, threads = 1;
};

/// Each figure is the maximum over ranks. The parts overlap.
struct PlanCost {
  double seconds = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;   // decoding and all other work that does not encode
  double network_seconds = 0;  // while at least one exchange is under way
};

/// Predicts the cost. The plan has passed check_plan. A collective ends when all ranks have joined
/// and their bytes have arrived; messages and parts of collectives share the links of both sides.
/// Errors: InvalidArgument (a `sync` that is a single task, since a plan does not tell its
/// exchanges; another number of ranks than the network's).
Result<PlanCost> estimate_cost(const Plan& plan, const CostInputs& inputs);

}  // namespace cinch::rt
