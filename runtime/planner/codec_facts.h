// What a planner must know of a compiled program.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/image/image.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

/// Payloads are bounded with the parameters' defaults, in `step` and all later ones. The facts keep
/// the program.
CodecFacts codec_facts(const std::shared_ptr<const ProgramImage>& program, std::uint32_t world,
                       std::uint64_t step = 0);

}  // namespace cinch::rt
