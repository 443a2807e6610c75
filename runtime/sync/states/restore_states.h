// Restores saved states (checkpoint.h) in a session that may have another plan, other pieces or
// another number of ranks.
#pragma once

#include <functional>

#include "runtime/core/program_info.h"
#include "runtime/device/compute_device.h"
#include "runtime/image/image.h"
#include "runtime/sync/states/checkpoint.h"

namespace cinch::rt {
// The states that a rank keeps for one piece at one site, on any device.

struct SiteKey {
  std::uint32_t piece = 0;  // of the plan
  Site site = Site::Worker;
};

class SiteStates {
 public:
  /// The states of one tensor of the list, which is open on the device. All arguments outlive this.
  SiteStates(ListSession& list, std::size_t tensor, const ComputeDevice& device)
      : list_(list), tensor_(tensor), device_(device) {}

  const ProgramInfo& info() const { return list_.info(); }
  /// Returns the states as a state file (state_file.h), or sets them. Errors: as
  /// Session::set_states; Device.
  Result<std::vector<std::uint8_t>> as_bytes() const {
    const auto turn = take_turn(device_);
    return list_.states_as_bytes(tensor_);
  }
  Status set(std::span<const std::uint8_t> bytes) {
    const auto turn = take_turn(device_);
    return list_.set_states(tensor_, bytes);
  }

 private:
  ListSession& list_;
  std::size_t tensor_;
  const ComputeDevice& device_;
};

using SiteVisitor = std::function<void(const SiteKey& key, SiteStates& states)>;

/// Calls its argument with every state of the session, each time in the same order.
using EverySite = std::function<void(const SiteVisitor& visit)>;

struct RestoreReport {
  std::uint64_t next_step = 0;  // one more than the last step before saving
  // This rank's counts of pieces and sites. Their states were restored as saved, joined from states
  // of other pieces, or set to initial values.
  std::size_t num_kept = 0, num_joined = 0, num_reset = 0;
  /// What this rank saved for pieces and sites, and no rank takes.
  std::size_t num_left = 0;
  /// What was reset or left over, and why: "fc1@hop begins anew: …".
  std::vector<std::string> notes;
};

/// What the states of a program follow beside the rank's own gradient: nothing; the sums that its
/// `finish` sees, for which one rank or all keep them; or what ranks tell each other in its `sync`.
enum class StatesFollow : std::uint8_t { Gradient, Sums, Ranks };
StatesFollow what_states_follow(const ProgramImage& image);
/// Pieces that a rank finishes, of programs whose states follow sums; `follow`: by codec.
std::vector<SavedPiece> finished_pieces(const Plan& plan, std::uint32_t rank,
                                        const std::vector<StatesFollow>& follow);

/// By tensor: 1 if its states follow sums or ranks and do not go together any more, since not all
/// ranks saved, or, as far as this rank can see, others finish its pieces now. Ranks join these by
/// the greatest.
std::vector<std::uint32_t> tensors_apart(const Plan& plan, std::uint32_t rank,
                                         std::span<const RankCheckpoint> saved,
                                         const std::vector<StatesFollow>& follow);

/// Collects the states of all sites. Errors: those of SiteStates.
Status collect_states(const Plan& plan, const EverySite& every_site, std::vector<SavedSite>& sites);

/// Ranks of a step that failed on some of them may have saved one step apart: brings all to the
/// newer one, if those that did not complete it had done their part of it. Returns notes about
/// these. The same arguments give the same on all ranks.
std::vector<std::string> take_newest_step(std::span<RankCheckpoint> saved);

/// States of a rank's own gradient come from the same rank. States of a result come from its
/// elements, whoever owned them. States of partial sums on their way are restored only under a plan
/// of the same name and number of ranks, since other plans add other things. States of a tensor
/// that is `apart` (tensors_apart, of all ranks; empty: none is) begin anew at all sites.
/// `begin_anew` sets all states to their
/// initial values, if some were not saved. All or nothing. Errors: InvalidArgument (checkpoints of
/// different steps, or two of one rank), CorruptFile, those of SiteStates.
Result<RestoreReport> restore_states(const Plan& plan, std::uint32_t rank,
                                     const EverySite& every_site,
                                     std::span<const RankCheckpoint> saved,
                                     std::span<const std::uint32_t> apart,
                                     const std::function<Status()>& begin_anew);

// The states that a rank keeps, one array each: by tensor, site and name.

/// A state of some elements of one tensor, as the program stores it.
struct StateArray {
  std::uint32_t tensor = 0;  // of the plan
  Site site = Site::Worker;
  std::int64_t first = 0, num_elems = 0;  // elements of the tensor that the state belongs to
  std::string name, dtype;
  std::vector<std::uint8_t> bytes;
};

/// Lists all states, by tensor, element, site and in the program's order. Errors: those of
/// SiteStates.
Result<std::vector<StateArray>> list_state_arrays(const Plan& plan, const EverySite& every_site);
/// Replaces one of them, by its index in the list. Errors: OutOfRange (no such index),
/// InvalidArgument (another length), those of SiteStates.
Status set_state_array(const Plan& plan, const EverySite& every_site, std::size_t place,
                       std::span<const std::uint8_t> bytes);

}  // namespace cinch::rt
