// From saved states (checkpoint.h) to those of a session that may have another plan, other pieces
// or another number of ranks.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/sync/states/checkpoint.h"
#include "runtime/sync/states/site_states.h"

namespace cinch::rt {

/// Calls its argument with every state of the session, each time in the same order.
using EverySite = std::function<void(const SiteVisitor& visit)>;

struct RestoreReport {
  std::uint64_t next_step = 0;  // one more than the last step before saving
  // Of this rank: pieces and sites whose states are as saved; put together from those of other
  // pieces; as if nothing had been saved.
  std::size_t num_kept = 0, num_joined = 0, num_reset = 0;
  /// What was reset or is left over, and why: "fc1@hop begins anew: …".
  std::vector<std::string> notes;
};

/// Errors: those of SiteStates.
Status collect_states(const Plan& plan, const EverySite& every_site, std::vector<SavedSite>& sites);

/// A rank's own gradient has the states of the same rank, a result those of its elements, whoever
/// owned them; partial sums on their way only under a plan of the same name and number of ranks,
/// since others add other things. All or nothing. Errors: InvalidArgument (checkpoints of different
/// steps or twice of one rank), CorruptFile, those of SiteStates.
Result<RestoreReport> restore_states(const Plan& plan, std::uint32_t rank,
                                     const EverySite& every_site,
                                     std::span<const RankCheckpoint> saved);

}  // namespace cinch::rt
