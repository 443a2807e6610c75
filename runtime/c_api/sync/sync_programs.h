// The programs of one rank that synchronises.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/autoplan/auto_plan.h"
#include "runtime/c_api/cinch_sync.h"
#include "runtime/c_api/support.h"
#include "runtime/session/loaded_program.h"
#include "runtime/sync/sync_session.h"

namespace cinch::c_api {

struct RankPrograms {
  std::vector<std::shared_ptr<const rt::LoadedProgram>> on_cpu;
  std::optional<rt::SyncDevice> device;                         // the GPU with its programs
  std::vector<std::shared_ptr<const rt::ProgramImage>> images;  // by codec
};

/// Collects the programs of a rank. Errors: INVALID_ARGUMENT (null, programs for another device
/// than the options name), UNAVAILABLE (an unknown device, no such GPU), those of GpuProgram::load.
CallResult<RankPrograms> rank_programs(const cinch_program* const* given, std::size_t count,
                                       const cinch_sync_options& options);

/// Chooses the plan. All ranks call it. `given` maps each of the request's tensors to its index in
/// the caller's arrays. Errors: INVALID_ARGUMENT (samples do not match the tensors), those of
/// choose_auto_plan.
CallResult<rt::AutoPlan> choose_plan(const cinch_sync_options& options, rt::PlanRequest request,
                                     const std::vector<std::size_t>& given, rt::SyncOptions session,
                                     rt::Transport& transport);

}  // namespace cinch::c_api
