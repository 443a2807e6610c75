// The tasks of one rank that compute, as who runs plans sees them (device_tasks.h does them).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/collective/rank_exchange.h"
#include "runtime/collective/transport.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/piece_memory.h"
#include "runtime/sync/protocol_parts.h"
#include "runtime/sync/states/site_states.h"
#include "runtime/sync/step_report.h"

namespace cinch::rt {

/// Where an exchange finds the wire, and the stream whose work it comes after.
struct WirePlace {
  std::span<std::uint8_t> bytes;
  MemoryPlace place = MemoryPlace::Host;
  void* after = nullptr;
};

class RankTasks {
 public:
  RankTasks() = default;
  RankTasks(const RankTasks&) = delete;
  RankTasks& operator=(const RankTasks&) = delete;
  virtual ~RankTasks() = default;

  /// Of one codec's programs. Errors: those of Session::set_parameter.
  virtual Status set_parameter(std::uint32_t codec, std::string_view name, double value) = 0;

  /// What must be done before the first task of a step. Errors: InvalidArgument (a payload of this
  /// step may be longer than the plan has room for: it was made for a later step), those of
  /// Session::payload_bound.
  virtual Status begin_step(std::uint64_t step) = 0;
  /// Runs a task that is no exchange. Errors: those of the sessions, CorruptPayload.
  virtual Status run(const Task& task, PieceMemory& memory) = 0;
  /// For an exchange whose turn has come; tasks may run at the same time. Errors: Device.
  virtual Result<WirePlace> wire_of(const Task& /*exchange*/, PieceMemory& memory) {
    return WirePlace{memory.wire()};
  }
  /// Of programs with a `sync` that run in parts: how this step's calls went.
  virtual const ProtocolParts& protocols() const = 0;
  /// The protocol of a program with a `sync` that is one task. Errors: those of Session::sync.
  virtual Status synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) = 0;
  /// After the last task, or one that failed: all that was begun has been done. Errors: Device,
  /// those of tasks that were only begun by then, named.
  virtual Status end_step() = 0;
  /// All states become what they were before the step; those of one piece, at all sites.
  virtual void take_back_step() = 0;
  virtual void take_back(std::uint32_t piece) = 0;
  /// The same value throughout the piece's update, which this rank gets. Errors: Device.
  enum class Fill : std::uint8_t { Zero, NaN };
  virtual Status fill_update(std::uint32_t piece, Fill with, PieceMemory& memory) = 0;

  /// The piece's states, at all sites, become what they were before the first step. Errors: those
  /// of opening a session.
  virtual Status reset_states(std::uint32_t piece) = 0;
  virtual SyncMemory memory_use() const = 0;
  /// All states that this rank keeps.
  virtual void visit_states(const SiteVisitor& visit) = 0;
};

}  // namespace cinch::rt
