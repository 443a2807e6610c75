// Chooses the plan that should take the least time, of all that could be used.
#pragma once

#include "runtime/planner/plan_cost.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

/// The choices that are tried.
struct ChoiceSpace {
  std::vector<std::uint64_t> piece_bytes = {16 << 20, 4 << 20, 1 << 20, 256 << 10};
  /// Length policies to try (not Auto) if some payloads have lengths that are known only after
  /// encoding.
  std::vector<LengthPolicy> lengths = {LengthPolicy::Padded, LengthPolicy::Exchanged};
  /// Also tries all tensors in f32, whatever codec they have, if all codecs take partial sums.
  bool may_be_dense = true;
};

struct PlanCandidate {
  std::string plan;
  std::uint64_t piece_bytes = 0;
  LengthPolicy lengths = LengthPolicy::Auto;
  bool is_dense = false;
  /// Instead of all these: a route for each group of tensors, in a plan that is named "routes". As
  /// of PlanRequest; and which tensors travel in f32, whatever codec they have.
  std::vector<PlanRoute> routes = {};
  std::vector<std::uint32_t> route_of = {};
  std::vector<bool> is_exact = {};
  PlanCost cost = {};
  double tried_seconds = 0;  // of a step that really ran; 0: none did
  bool is_tried() const { return tried_seconds > 0; }
  double seconds() const { return is_tried() ? tried_seconds : cost.seconds; }
};

struct PlanChoice {
  std::vector<PlanCandidate> candidates;  // fastest first
  PlanCandidate chosen;
  /// "dense allreduce: 41.2 ms; two_shot in 4096 KiB pieces: 12.9 ms: chosen".
  std::string reason;
};

/// Predicts the request's plan. None: codecs do not take it, a sum over ranks may not fit, or it is
/// an allreduce that a transport cannot add up, which equals allgather. Errors: those of build_plan
/// and estimate_cost.
Result<std::optional<PlanCost>> predict_useful(const PlanRequest& request,
                                               const CostInputs& inputs);

/// Adds a plan by group of tensors to the candidates. It is chosen if it is faster than all others
/// by more than predictions can tell.
void add_by_group(PlanChoice& choice, const PlanRequest& by_group, const PlanCost& cost);
/// May the tensors travel in f32, too? Dense tensors are averaged; some programs compute something
/// else from the sum.
bool may_be_dense(const PlanRequest& request);

/// Predicts every plan that the codecs take; hierarchical only if there are machines. `request` has
/// no plan, piece size or lengths. Among plans that differ by less than 3 %, the first of
/// plan_names() wins, in the largest pieces. Errors: those of build_plan and estimate_cost.
Result<PlanChoice> choose_plan(const PlanRequest& request, const CostInputs& inputs,
                               const ChoiceSpace& space = {});

/// Indices of the candidates that predictions cannot tell apart, the chosen one first. If the
/// chosen one compresses, the best one that does not follows, and the other way round. The list is
/// short, and some steps of each take less than `seconds`. It is empty if there is nothing to tell
/// apart.
std::vector<std::size_t> worth_trying(const PlanChoice& choice, double seconds);
/// Chooses the fastest candidate that was tried, if any was.
void choose_tried(PlanChoice& choice);

/// Returns `request` with the candidate's plan, piece size and lengths.
PlanRequest request_of(PlanRequest request, const PlanCandidate& candidate);

/// "dense two_shot in 1024 KiB pieces, lengths first".
std::string describe_candidate(const PlanCandidate& candidate);

}  // namespace cinch::rt
