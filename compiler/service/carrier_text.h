// What carries sums of a program, in words and as data, for explain and list.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/core/program_info.h"

namespace cinch::service {

/// "itself", "error_feedback(topk(ratio: 0.001))", "f32 (exact)", …
std::string carrier_text(const rt::ProgramInfo& info);
/// kind (itself, exact, program or none), text, shares_draws.
nlohmann::json carrier_json(const rt::SumCarrier& carrier);

}  // namespace cinch::service
