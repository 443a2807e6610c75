// `cinch explain --formulas`: sizes, bounds and bytes as formulas of n and the parameters.
#pragma once
#include <nlohmann/json.hpp>

namespace cinch::driver {

/// `with_fusion`: also tells why neighbouring sweeps are not fused.
void print_formulas(const nlohmann::json& report, bool with_fusion);

}  // namespace cinch::driver
