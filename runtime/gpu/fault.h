// Turns the words in which a kernel reports a fault (gpu_abi.h) into an error for people.
#pragma once
#include <cstdint>

#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// The error for GpuOutcome::failed. Errors: CheckFailed (a check of the program), CorruptPayload,
/// VersionMismatch; Internal for an unknown number.
Status gpu_fault(const ProgramImage& image, std::uint32_t failed);

}  // namespace cinch::rt
