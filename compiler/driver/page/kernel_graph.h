// The kernels of an entry as a picture: arrays that are there before on the left, arrays that they
// make on the right, and on every line the bytes that move.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace cinch::driver {

/// `kernels` as EntryKernels::list gives them; small ones, that are no sweeps, are one box.
std::string kernel_graph(const nlohmann::json& kernels, std::string_view label);

}  // namespace cinch::driver
