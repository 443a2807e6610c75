// The sessions of a rank on its device: a list for each codec and site.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/states/site_states.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {

/// The sessions of one codec at one site. On a host a list has all pieces there. On a GPU, where
/// one launch serves a list, it has the pieces of a group, or one piece that meets other ranks.
struct DeviceList {
  static constexpr std::uint32_t kNoEntry = UINT32_MAX;

  PieceList pieces;                    // by entry
  std::vector<std::uint32_t> entries;  // by piece; kNoEntry: none
  std::vector<std::uint64_t> bounds;   // by entry: the largest payload in this step
  bool only_decodes = false;           // holds no states
  std::unique_ptr<ListSession> sessions;
  std::vector<const Task*> begun;  // tasks whose calls were begun and not yet collected

  std::size_t entry_of(std::uint32_t piece) const { return entries[piece]; }
  bool has(std::uint32_t piece) const {
    return piece < entries.size() && entries[piece] != kNoEntry;
  }
  /// Adds a piece that it does not have.
  void add(std::uint32_t piece);
};

class DeviceLists {
 public:
  // Codec, site, and on a GPU the first piece.
  using Key = std::tuple<std::uint32_t, Site, std::uint32_t>;
  /// What sessions are told of their rank.
  struct Rank {
    std::uint32_t world = 1, rank = 0;
    std::uint64_t seed = 0;
  };

  /// `plan` and `device` outlive this.
  DeviceLists(const Plan& plan, ComputeDevice& device, const Rank& rank)
      : plan_(plan), device_(device), rank_(rank) {
    for (std::uint32_t codec = 0; codec < device.num_programs(); ++codec)
      carried_.push_back(codec_carried_by(plan, codec));
  }

  /// Notes the sessions that a task needs; `open` then opens them all.
  void need(const Task& task);
  Status open();
  Status open(std::uint32_t codec, Site site, DeviceList& list);
  void close() { lists_.clear(); }
  bool is_carrier(std::uint32_t codec) const { return carried_[codec].has_value(); }

  std::map<Key, DeviceList>& all() { return lists_; }
  const std::map<Key, DeviceList>& all() const { return lists_; }
  /// The list of the pieces of one of the task's groups.
  DeviceList& of(const Task& task, Site site, std::uint32_t first_piece) {
    return lists_.at(key_of(codec_of(plan_, task), site, first_piece));
  }

  /// Calls on_list(list, pieces, place) for each list that has pieces of the task. The pieces of a
  /// list are consecutive in the task, from `place` on.
  template <typename OnList>
  Status for_each(const Task& task, Site site, const OnList& on_list);

  /// Names the piece at fault.
  Status named(const ListStatus& status, const PieceList& pieces) const;
  /// Valid until the next call.
  ListCall call_on(const DeviceList& list, const PieceList& pieces, std::uint64_t step);
  /// Waits for the stream and sets outcomes(). Errors: those of the pieces' last calls, named.
  Status collect(DeviceList& list);
  /// By entry of the list that was collected last.
  const std::vector<TensorOutcome>& outcomes() const { return outcomes_; }
  /// Checks how a call of the task, or all of them, went: now, or at the step's end if
  /// `is_deferred`.
  Status check(DeviceList& list, const Task& task, bool is_deferred);
  Status check(const Task& task, Site site, bool is_deferred);
  /// Checks those that were deferred.
  Status collect_begun();

 private:
  std::uint64_t seed_at(std::uint32_t codec, Site site) const;
  Key key_of(std::uint32_t codec, Site site, std::uint32_t first_piece) const {
    return {codec, site, device_.is_host() ? 0 : first_piece};
  }
  Status collect_begun(DeviceList& list);

  const Plan& plan_;
  ComputeDevice& device_;
  Rank rank_;
  std::map<Key, DeviceList> lists_;
  // By codec: the codec whose sums it carries, if any
  std::vector<std::optional<std::uint32_t>> carried_;
  // Data of the running call; the vectors keep their memory.
  PieceList pieces_;
  std::vector<std::size_t> which_;
  std::vector<TensorOutcome> outcomes_;
};

template <typename OnList>
Status DeviceLists::for_each(const Task& task, Site site, const OnList& on_list) {
  const std::size_t num_groups = task.groups.size(), count = device_.is_host() ? num_groups : 1;
  std::size_t place = 0;
  for (std::size_t begin = 0; begin < num_groups; begin += count) {
    if (device_.is_host()) list_pieces(plan_, task, pieces_);
    const PieceList& pieces = device_.is_host() ? pieces_ : plan_.groups[task.groups[begin]].pieces;
    if (pieces.empty()) continue;
    Status status = on_list(of(task, site, pieces[0]), pieces, place);
    if (!status) return status;
    place += pieces.size();
  }
  return Ok{};
}

}  // namespace cinch::rt
