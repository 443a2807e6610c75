// The parts of programs with a `sync`, as tasks: what they read from the wire and write to it. The
// same wherever a rank computes.
#pragma once
#include <optional>

#include "runtime/collective/rank_exchange.h"
#include "runtime/sync/step_tensors.h"

namespace cinch::rt {

/// Computes for ProtocolParts. Its memory holds the inputs and outputs of collectives.
class ProtocolBody {
 public:
  ProtocolBody() = default;
  ProtocolBody(const ProtocolBody&) = delete;
  ProtocolBody& operator=(const ProtocolBody&) = delete;
  virtual ~ProtocolBody() = default;

  /// As Session::begin_sync.
  virtual Result<std::optional<RankPoint>> begin(std::uint32_t piece) = 0;
  virtual Result<std::optional<RankPoint>> go_on(std::uint32_t piece, RankStatus all) = 0;
  /// Copies between the body's memory and a slot of the same size. The slot's bytes are `wire` if
  /// it lies on the host.
  virtual Status copy_out(std::uint32_t slot, std::span<std::uint8_t> wire,
                          std::span<const std::uint8_t> from) = 0;
  virtual Status copy_in(std::span<std::uint8_t> to, std::uint32_t slot,
                         std::span<const std::uint8_t> wire) = 0;
  /// Writes zeros to the slot.
  virtual Status clear(std::uint32_t slot, std::span<std::uint8_t> wire) = 0;
};

/// How a rank's call ended, and the part after which the rank knew.
struct PartOutcome {
  RankStatus status = RankStatus::Good;
  std::uint32_t part = 0;
};

class ProtocolParts {
 public:
  /// `plan` outlives this.
  ProtocolParts(const Plan& plan, std::uint32_t rank) : plan_(plan), rank_(rank) { begin_step(); }

  void begin_step();
  /// Runs a task of kind Part. A call that failed here, or whose gradient is not finite, joins its
  /// remaining collectives with zeros, so that no rank waits for it; the others learn of it when
  /// the step ends. Errors: those of the body, with the piece's name; InvalidArgument (the
  /// program's collectives are not those of the plan).
  Status run(const Task& task, PieceMemory& memory, ProtocolBody& body);

  /// The outcome of a piece whose last part has run.
  PartOutcome outcome(std::uint32_t piece) const { return calls_[piece].outcome; }
  /// Why the piece's call failed here in this step; none if it did not.
  const std::optional<Error>& failure(std::uint32_t piece) const { return calls_[piece].failure; }

 private:
  struct Call {
    std::optional<RankPoint> point;  // where it waits; none: it has ended
    PartOutcome outcome;
    std::optional<Error> failure;
  };
  std::uint32_t piece_of(const Task& task) const { return plan_.groups[task.groups[0]].pieces[0]; }
  Status go_on(const Task& task, Call& call, PieceMemory& memory, ProtocolBody& body);
  Status take_results(const Task& task, const CollectiveCall& call, PieceMemory& memory,
                      ProtocolBody& body) const;
  Status give(const Task& task, const Call& call, PieceMemory& memory, ProtocolBody& body) const;
  Status end(const Task& task, Call& call, ProtocolBody& body) const;

  const Plan& plan_;
  const std::uint32_t rank_;
  std::vector<Call> calls_;  // by piece
};

/// Joins the calls of all ranks for one piece into one outcome. A gradient that was not finite
/// decides. A call that failed at a later part than the one where another stopped had computed with
/// that one's zeros, and does not count.
struct JointOutcome {
  RankStatus status = RankStatus::Good;
  std::uint32_t rank = 0;  // the first rank at fault
};
JointOutcome join_outcomes(std::span<const PartOutcome> by_rank);

}  // namespace cinch::rt
