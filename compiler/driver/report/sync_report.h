// The final report of `cinch sync`: one value, as JSON or as text.
#pragma once
#include <nlohmann/json.hpp>

#include "compiler/driver/options.h"
#include "compiler/driver/ranks/sync_rank.h"
#include "compiler/driver/ranks/sync_tensors.h"
#include "runtime/plan/plan.h"

namespace cinch::driver {

nlohmann::json report_of(const SyncCommandOptions& options, const SyncSubject& subject,
                         const rt::Plan& plan, const SyncReport& report);
void print_sync_report(const nlohmann::json& report);

}  // namespace cinch::driver
