// What a kernel found wrong, from the words it leaves (gpu_abi.h) to an error for people.
#pragma once
#include <cstdint>

#include "runtime/core/error.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// Of GpuOutcome::failed. Errors: CheckFailed (a check of the program), CorruptPayload,
/// VersionMismatch; Internal for a number that is none of them.
Status gpu_fault(const ProgramImage& image, std::uint32_t failed);

}  // namespace cinch::rt
