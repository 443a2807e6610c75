// The parts of programs with a `sync`, as tasks: what they read from the wire and leave there, the
// same wherever a rank computes.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/piece_memory.h"

namespace cinch::rt {

/// Who computes. What collectives read and write is memory of this one's.
class ProtocolBody {
 public:
  ProtocolBody() = default;
  ProtocolBody(const ProtocolBody&) = delete;
  ProtocolBody& operator=(const ProtocolBody&) = delete;
  virtual ~ProtocolBody() = default;

  /// As of Session.
  virtual Result<std::optional<RankPoint>> begin(std::uint32_t piece) = 0;
  virtual Result<std::optional<RankPoint>> go_on(std::uint32_t piece, RankStatus all) = 0;
  /// From the body's memory to a slot of the wire, which is `wire` where it lies on the host, and
  /// back; of the same size.
  virtual Status copy_out(std::uint32_t slot, std::span<std::uint8_t> wire,
                          std::span<const std::uint8_t> from) = 0;
  virtual Status copy_in(std::span<std::uint8_t> to, std::uint32_t slot,
                         std::span<const std::uint8_t> wire) = 0;
  /// Zeros in the slot.
  virtual Status clear(std::uint32_t slot, std::span<std::uint8_t> wire) = 0;
};

/// How a rank's call went up to its end, and the part at whose end it knew.
struct PartOutcome {
  RankStatus status = RankStatus::Good;
  std::uint32_t part = 0;
};

class ProtocolParts {
 public:
  /// `plan` outlives this.
  explicit ProtocolParts(const Plan& plan) : plan_(plan) { begin_step(); }

  void begin_step();
  /// A task of kind Part. A call that has failed here, or whose gradient is not finite, takes part
  /// in what is left of its collectives with zeros, so that no rank waits for it; the others learn
  /// of it when the step ends. Errors: those of the body, with the piece's name; InvalidArgument
  /// (the program meets in another way than the plan says).
  Status run(const Task& task, PieceMemory& memory, ProtocolBody& body);

  /// Of a piece whose last part has run.
  PartOutcome outcome(std::uint32_t piece) const { return calls_[piece].outcome; }
  /// Why a call has failed here, in this step: of the piece.
  const std::optional<Error>& failure(std::uint32_t piece) const { return calls_[piece].failure; }

 private:
  struct Call {
    std::optional<RankPoint> point;  // where it waits; none: it is over
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
  std::vector<Call> calls_;  // by piece
};

/// What the calls of all ranks for one piece come to: where a gradient was not finite, that; a call
/// that failed at a later part than another one stopped has computed with that one's zeros and
/// counts for nothing.
struct JointOutcome {
  RankStatus status = RankStatus::Good;
  std::uint32_t rank = 0;  // the first one that is at fault
};
JointOutcome join_outcomes(std::span<const PartOutcome> by_rank);

}  // namespace cinch::rt
