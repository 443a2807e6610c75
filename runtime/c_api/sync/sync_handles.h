// The structs behind the opaque types of cinch_sync.h.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/autoplan/auto_plan.h"
#include "runtime/c_api/cinch_sync.h"
#include "runtime/c_api/support.h"
#include "runtime/collective/loopback.h"
#include "runtime/session/loaded_program.h"
#include "runtime/sync/sync_session.h"

namespace cinch::c_api {

struct TransportParts {
  std::shared_ptr<rt::LoopbackWorld> world;  // outlives the transport; null for other transports
  std::unique_ptr<rt::Transport> transport;
  rt::UseFlag in_use;                        // guards the transport and all sessions over it
  std::atomic<std::uint64_t> sent_bytes{0};  // the value when it was last asked for
  // The session whose step in parts is under way over it; null: none.
  std::atomic<const cinch_sync*> stepping{nullptr};
};

}  // namespace cinch::c_api

// Named as the C API names them.
// NOLINTBEGIN(readability-identifier-naming)
struct cinch_loopback {
  std::shared_ptr<cinch::rt::LoopbackWorld> world;
  std::uint32_t num_ranks = 0;
};

struct cinch_transport {
  std::shared_ptr<cinch::c_api::TransportParts> parts;
};

struct cinch_sync {
  std::shared_ptr<cinch::c_api::TransportParts> transport;  // outlives the session
  std::unique_ptr<cinch::rt::SyncSession> session;
  std::size_t num_programs = 0;             // of the caller; behind them come carriers of sums
  cinch_device device = CINCH_CPU;          // the device of its tensors
  std::vector<std::size_t> given;           // by tensor of the plan: index in the caller's arrays
  std::vector<std::uint32_t> plan_tensors;  // by index in the caller's arrays: tensor of the plan
  std::string plan, choice, notes;          // texts that the caller was given
  cinch::rt::StateArray shown_state;        // texts of this state were given to the caller
  // Arrays of the running call. They are kept, so that calls allocate nothing.
  std::vector<cinch::rt::ConstTensorView> gradients;
  std::vector<cinch::rt::TensorView> updates;
};
// NOLINTEND(readability-identifier-naming)

namespace cinch::c_api {

/// Errors: INVALID_ARGUMENT (no size of a struct). null: none is wanted.
CallStatus check_restored(const cinch_sync_restored* restored);
/// Writes what restoring did, unless `restored` is null, and keeps its notes.
CallStatus tell_restored(cinch_sync& sync, const rt::RestoreReport& report,
                         cinch_sync_restored* restored);

/// Runs `body` for a session, unless another call uses its transport.
template <typename Body>
cinch_status guarded_on(cinch_sync* sync, cinch_error* error, const Body& body) {
  return guarded(error, [&]() -> CallStatus {
    if (sync == nullptr) return invalid("sync is null");
    return use_alone(sync->transport->in_use, [&]() -> CallStatus {
      const cinch_sync* const stepping = sync->transport->stepping;
      if (stepping == nullptr || stepping == sync) return body(*sync);
      return invalid("another step is under way over this transport");
    });
  });
}

/// Makes a handle of the transport. `world`: what the transport needs, or null.
CallStatus give_transport(rt::Result<std::unique_ptr<rt::Transport>> made,
                          std::shared_ptr<rt::LoopbackWorld> world, cinch_transport** to);

// The programs of one rank that synchronises.

struct RankPrograms {
  std::vector<std::shared_ptr<const rt::LoadedProgram>> on_cpu;
  std::optional<rt::SyncDevice> device;                         // the GPU with its programs
  std::vector<std::shared_ptr<const rt::ProgramImage>> images;  // by codec
};

/// Collects the programs of a rank. Errors: INVALID_ARGUMENT (null, programs for another device
/// than the options name), UNAVAILABLE (an unknown device, no such GPU), those of GpuProgram::load.
CallResult<RankPrograms> rank_programs(const cinch_program* const* given, std::size_t count,
                                       const cinch_sync_options& options);

/// Adds what carries the sums of `program` to the programs of the rank. Errors: those of carrier_of
/// and rank_programs.
CallStatus add_carrier(const cinch_program& program, const cinch_sync_options& options,
                       RankPrograms& to);

/// Chooses the plan. All ranks call it. `given` maps each of the request's tensors to its index in
/// the caller's arrays. Errors: INVALID_ARGUMENT (samples do not match the tensors), those of
/// choose_auto_plan.
CallResult<rt::AutoPlan> choose_plan(const cinch_sync_options& options, rt::PlanRequest request,
                                     const std::vector<std::size_t>& given, rt::SyncOptions session,
                                     rt::Transport& transport);

}  // namespace cinch::c_api
