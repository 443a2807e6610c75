// Ranks that are threads of the command.
#pragma once
#include <cstdint>
#include <functional>

namespace cinch::driver {

// Calls body(rank) for all ranks at once and returns when all have ended. Throws what one of them
// has thrown. Errors of a rank itself take precedence over errors caused by another rank.
void run_on_rank_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& body);

}  // namespace cinch::driver
