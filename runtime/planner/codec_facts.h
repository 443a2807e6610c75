// The facts of a compiled program that a planner needs.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/image/image.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

/// Collects the facts of a program. Payloads are bounded with the parameters' defaults, for `step`
/// and all later steps. The facts keep the program alive.
CodecFacts codec_facts(const std::shared_ptr<const ProgramImage>& program, std::uint32_t world,
                       std::uint64_t step = 0);

}  // namespace cinch::rt
