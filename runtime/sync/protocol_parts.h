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
};

class ProtocolParts {
 public:
  /// `plan` outlives this.
  explicit ProtocolParts(const Plan& plan) : plan_(plan) { begin_step(); }

  void begin_step();
  /// A task of kind Part. Where some rank's gradient is not finite, or its call has failed, the
  /// parts behind the exchange that told so do nothing. Errors: those of the body, with the piece's
  /// name; InvalidArgument (the program meets in another way than the plan says), Internal (a rank
  /// that is in no state).
  Status run(const Task& task, PieceMemory& memory, ProtocolBody& body);

  /// In this step another rank's call has failed, which ends the step: that rank says why.
  const std::optional<Error>& failure_elsewhere() const { return failure_elsewhere_; }

 private:
  using Point = std::optional<RankPoint>;
  /// `point`: where the call waits.
  Result<Point> go_on(const Task& task, const RankPoint& point, PieceMemory& memory,
                      ProtocolBody& body);
  Result<RankStatus> status_of_all(const Task& task, RankStatus own, PieceMemory& memory);
  std::uint32_t piece_of(const Task& task) const { return plan_.groups[task.groups[0]].pieces[0]; }
  Status take_results(const Task& task, const CollectiveCall& call, PieceMemory& memory,
                      ProtocolBody& body) const;
  Status give(const Task& task, const Point& point, PieceMemory& memory, ProtocolBody& body) const;

  const Plan& plan_;
  std::vector<Point> points_;  // by piece: where its call waits; none: it is over
  std::optional<Error> failure_elsewhere_;
};

}  // namespace cinch::rt
