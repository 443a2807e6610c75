// The records that ranks send one another when a step ends. All ranks gather all records in one
// exchange. From them every rank decides in the same way how the step ends.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/protocol_parts.h"

namespace cinch::rt {

class StepRecords {
 public:
  /// `plan` outlives this.
  StepRecords(const Plan& plan, std::uint32_t rank);

  // ---- this rank's ----
  /// `options`: a digest of the step's options. `next_step`: one more than the step that this
  /// rank's states come from.
  void begin(std::uint64_t step, std::uint64_t options, std::uint64_t next_step);
  void ask_to_stop();
  /// UpdateDigests::of_all.
  void set_updates(std::uint64_t digest);
  void note_non_finite();
  /// Notes that this rank's model used the tensor and computed its gradient.
  void note_used(std::uint32_t tensor);
  void set_outcome(std::size_t protocol, const PartOutcome& outcome);
  /// Pieces whose programs run in parts; `protocol` is an index into this list.
  const std::vector<std::uint32_t>& protocols() const { return protocols_; }

  /// The exchange that gathers the records; this outlives it.
  Exchange exchange();

  // ---- those of all ranks, after the exchange ----
  /// Errors: InvalidArgument (ranks at different steps, with different options, or with states of
  /// different steps).
  Status check_steps() const;
  bool is_any_asking_to_stop() const;
  bool is_any_non_finite() const;
  /// Do digests of updates differ between ranks that have one?
  bool do_updates_differ() const;
  bool is_used_anywhere(std::uint32_t tensor) const;
  JointOutcome outcome(std::size_t protocol);

 private:
  std::uint64_t word(std::uint32_t rank, std::size_t index) const;
  std::uint64_t& own_word(std::size_t index);
  bool has_flag(std::uint64_t flag) const;
  Status check_states() const;

  const Plan& plan_;
  std::uint32_t rank_;
  std::vector<std::uint32_t> protocols_;
  // One rank's record: step, options, flags below the step of states, digest of updates, outcomes
  // of protocols two to a word, used tensors 64 to a word.
  std::size_t first_outcome_ = 0, first_used_ = 0, words_ = 0;
  std::vector<std::uint64_t> own_, all_;
  std::vector<ByteRange> parts_;
  std::vector<PartOutcome> by_rank_;  // outcomes of one protocol; kept to reuse its memory
};

}  // namespace cinch::rt
