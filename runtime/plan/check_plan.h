// Checks a plan before any of it runs.
#pragma once
#include <optional>
#include <span>

#include "runtime/core/program_info.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

/// Checks the plans of all ranks together:
/// - pieces cover each tensor once, groups hold each piece once, indices are valid;
/// - slots lie in the wire; what a task reads was written by an earlier task that it depends on; if
/// two tasks touch the same bytes or values and one of them writes, they are ordered;
/// - every update is written once;
/// - exchanges match: collectives come in one order on all ranks, messages in one order between two
/// ranks, both with the sizes that the other side expects;
/// - there is an order in which all tasks of all ranks end.
/// Errors: InvalidArgument, which names rank and task.
Status check_plan(const Plan& plan);

/// Checks the same of what one rank does, with that rank's tasks alone: everything but how the
/// exchanges of ranks match. Ranks compare plan_digest instead, so opening takes no longer than the
/// rank's own tasks, whatever the number of ranks.
Status check_rank(const Plan& plan, std::uint32_t rank);

// Which plans suit a program: by whether it takes partial sums (ProgramInfo::takes_partial_sums),
// and by what carries its sums.

/// What a plan must know of a codec.
struct SumRules {
  /// May partial sums be encoded? If not, the payload of every rank's gradient must be decoded.
  bool takes_partial_sums = true;
  /// A program that does not carry its own sums encodes gradients only.
  CarrierKind carrier = CarrierKind::Itself;
};

struct PlanRefusal {
  enum class Why : std::uint8_t { PartialSums, Carrier };
  std::uint32_t codec = 0;
  Why why = Why::PartialSums;
};

/// Finds a codec that does not take the plan; `rules` by codec.
std::optional<PlanRefusal> find_refusal(const Plan& plan, std::span<const SumRules> rules);

// The parts of check_plan. Each relies on the ones before it.

/// Checks that pieces cover tensors, groups hold pieces, and every index of a task is valid.
Status check_shape(const Plan& plan);
/// Checks on one rank that the parts of each `sync` follow each other, with their exchanges between
/// them.
Status check_protocols(const Plan& plan, std::uint32_t rank);
/// Checks on one rank that reads come after writes, conflicting accesses are ordered, and updates
/// are written once.
Status check_accesses(const Plan& plan, std::uint32_t rank);
/// Checks between ranks that exchanges match and all tasks end.
Status check_meetings(const Plan& plan);

/// "rank 2, task 7 (encode …): what"
tl::unexpected<Error> task_fault(const Plan& plan, std::uint32_t rank, std::size_t task,
                                 const std::string& what);

}  // namespace cinch::rt
