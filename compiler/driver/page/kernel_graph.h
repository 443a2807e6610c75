// Draws the kernels of an entry: input arrays on the left, the arrays that they make on the right,
// and on every line the bytes that move.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace cinch::driver {

/// `kernels` is the result of EntryKernels::list. Small kernels that are not sweeps share one box.
std::string kernel_graph(const nlohmann::json& kernels, std::string_view label);

}  // namespace cinch::driver
