// Plan "auto" of the C API.
#pragma once
#include <cstddef>
#include <vector>

#include "runtime/autoplan/auto_plan.h"
#include "runtime/c_api/cinch_sync.h"
#include "runtime/c_api/support.h"

namespace cinch::c_api {

/// Chooses the plan. All ranks call it. `given` maps each of the request's tensors to its index in
/// the caller's arrays. Errors: INVALID_ARGUMENT (samples do not match the tensors), those of
/// choose_auto_plan.
CallResult<rt::AutoPlan> choose_plan(const cinch_sync_options& options, rt::PlanRequest request,
                                     const std::vector<std::size_t>& given, rt::SyncOptions session,
                                     rt::Transport& transport);

}  // namespace cinch::c_api
