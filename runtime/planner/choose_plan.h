// The plan that should take least time, of all that could be used.
#pragma once
#include <string>
#include <vector>

#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

/// What is tried.
struct ChoiceSpace {
  std::vector<std::uint64_t> piece_bytes = {16 << 20, 4 << 20, 1 << 20, 256 << 10};
  /// Those other than Auto where payloads have lengths that are known late.
  std::vector<LengthPolicy> lengths = {LengthPolicy::Padded, LengthPolicy::Exchanged};
  /// All tensors in f32, whatever codec they have; not where one does not take partial sums.
  bool may_be_dense = true;
};

struct PlanCandidate {
  std::string plan;
  std::uint64_t piece_bytes = 0;
  LengthPolicy lengths = LengthPolicy::Auto;
  bool is_dense = false;
  PlanCost cost;
  double tried_seconds = 0;  // of a step that was taken; 0: none was
  bool is_tried() const { return tried_seconds > 0; }
  double seconds() const { return is_tried() ? tried_seconds : cost.seconds; }
};

struct PlanChoice {
  std::vector<PlanCandidate> candidates;  // cheapest first
  PlanCandidate chosen;
  /// "dense allreduce: 41.2 ms; two_shot in 4096 KiB pieces: 12.9 ms: chosen".
  std::string reason;
};

/// Tries every plan that codecs take; hierarchical only where there are machines. `request` without
/// plan, piece size and lengths. Of plans that differ by less than three hundredths the first of
/// plan_names() is chosen, in the largest pieces. Errors: those of build_plan and estimate_cost.
Result<PlanChoice> choose_plan(const PlanRequest& request, const CostInputs& inputs,
                               const ChoiceSpace& space = {});

/// Places of the candidates that predictions cannot tell apart, the chosen one first, then the best
/// that compresses where that one does not, or does not where it does: few, and such that some
/// steps of each take less than `seconds`. None where there is nothing to tell apart.
std::vector<std::size_t> worth_trying(const PlanChoice& choice, double seconds);
/// Chooses the fastest of those that were tried, if any was.
void choose_tried(PlanChoice& choice);

/// `request` as the candidate has it.
PlanRequest request_of(PlanRequest request, const PlanCandidate& candidate);

/// "dense two_shot in 1024 KiB pieces, lengths first".
std::string describe_candidate(const PlanCandidate& candidate);

}  // namespace cinch::rt
