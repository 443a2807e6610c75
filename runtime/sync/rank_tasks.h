// The computing tasks of one rank, as an interface for whoever runs plans (device_tasks.h
// implements it).
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
#include "runtime/sync/task_times.h"

namespace cinch::rt {

/// Where an exchange finds the wire, and the stream whose work must end before it.
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

  /// Sets a parameter of one codec's programs. Errors: those of Session::set_parameter.
  virtual Status set_parameter(std::uint32_t codec, std::string_view name, double value) = 0;

  /// Prepares a step, before its first task. Errors: InvalidArgument (a payload of this step may be
  /// longer than its room in the plan, which was made for a later step), those of
  /// Session::payload_bound.
  virtual Status begin_step(std::uint64_t step) = 0;
  /// Runs a task that is not an exchange. Errors: those of the sessions, CorruptPayload.
  virtual Status run(const Task& task, PieceMemory& memory) = 0;
  /// The place of the wire for the next exchange; tasks may run at the same time. Errors: Device.
  virtual Result<WirePlace> wire_of(const Task& /*exchange*/, PieceMemory& memory) {
    return WirePlace{memory.wire()};
  }
  /// How this step's calls went, for programs with a `sync` that run in parts.
  virtual const ProtocolParts& protocols() const = 0;
  /// Runs the protocol of a program whose `sync` is one task. Errors: those of Session::sync.
  virtual Status synchronise(const Task& task, PieceMemory& memory, RankExchange& ranks) = 0;
  /// Ends the step, after its last task or one that failed. All work that was begun is then done.
  /// Errors: Device, and named errors of tasks that had only been begun.
  virtual Status end_step() = 0;
  /// take_back_step sets all states back to those before the step; take_back_piece those of one
  /// piece, at all sites.
  virtual void take_back_step() = 0;
  virtual void take_back(std::uint32_t piece) = 0;
  /// Fills the update of a piece, if this rank gets it, with one value. Errors: Device.
  enum class Fill : std::uint8_t { Zero, NaN };
  virtual Status fill_update(std::uint32_t piece, Fill with, PieceMemory& memory) = 0;

  /// Sets the piece's states, at all sites, back to those before the first step. Errors: those of
  /// opening a session.
  virtual Status reset_states(std::uint32_t piece) = 0;
  virtual SyncMemory memory_use() const = 0;
  /// Visits all states that this rank keeps.
  virtual void visit_states(const SiteVisitor& visit) = 0;
};

}  // namespace cinch::rt
